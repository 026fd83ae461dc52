#include "nn/layers/layer_memory.h"

#include <algorithm>

#include "core/error.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

// Returns slots [begin[b], begin[b] + n) of each row of x (B, S, d). Slots before 0 read slot 0.
torch::Tensor slots(const torch::Tensor& x, const torch::Tensor& begin, std::int64_t n) {
  auto at = (begin.unsqueeze(1) + torch::arange(n, begin.options())).clamp_min(0);
  at = upload(at, x.device()).unsqueeze(2).expand({x.size(0), n, x.size(2)});
  return x.gather(1, at);
}

}  // namespace

LayerMemory::LayerMemory(const Batch& batch, State* state)
    : RealFirst(batch), state_(state), steps_(batch.steps()) {
  seen_ = torch::zeros_like(count());
  if (state_ == nullptr) return;
  if (state_->has("seen")) {
    seen_ = state_->tensors["seen"].cpu();
    if (seen_.size(0) != batch.rows())
      core::fail(core::Code::bug, "a state of {} rows cannot continue with a batch of {} rows",
                 seen_.size(0), batch.rows());
    if (batch.fresh.defined()) seen_ = seen_.masked_fill(batch.fresh, 0);
  }
  state_->reset(batch.fresh);
  state_->tensors["seen"] = seen_ + count();
}

std::int64_t LayerMemory::remembered(const std::string& name, std::int64_t length) const {
  if (state_ == nullptr || !state_->has(name + ".memory")) return 0;
  const auto kept = state_->tensors.at(name + ".memory").size(1);
  return std::min({kept, length, seen_.max().item<std::int64_t>()});
}

torch::Tensor LayerMemory::extend(const std::string& name, const torch::Tensor& x,
                                  std::int64_t length) {
  if (state_ == nullptr || length == 0) return x;
  const auto before = remembered(name, length);
  auto& memory = state_->tensors[name + ".memory"];
  auto all = x;
  if (before > 0 && memory.size(2) != x.size(2))
    core::fail(core::Code::bug, "{}: a state of width {} cannot continue with width {}", name,
               memory.size(2), x.size(2));
  if (before > 0) all = torch::cat({memory.narrow(1, memory.size(1) - before, before), x}, 1);
  // Row b's tokens end before slot before + count[b].
  const auto keep = std::min(length, before + count().max().item<std::int64_t>());
  memory = dense() ? all.narrow(1, before + steps_ - keep, keep).clone()
                   : slots(all, count() + (before - keep), keep);
  return all;
}

torch::Tensor LayerMemory::first_valid(std::int64_t remembered) const {
  const auto first = (remembered - seen_).clamp_min(0);
  return first.any().item<bool>() ? first : torch::Tensor();
}

torch::Tensor FixedLayerPast::extend(const std::string& name, const torch::Tensor& x,
                                     std::int64_t length) {
  if (length == 0) return x;
  auto& memory = kept_.tensors[name + ".memory"];
  if (!memory.defined()) memory = torch::zeros({x.size(0), length, x.size(2)}, x.options());
  auto all = torch::cat({memory, x}, 1);
  memory =
      place_.full ? all.narrow(1, x.size(1), length) : slots(all, place_.count.squeeze(1), length);
  return all;
}

torch::Tensor FixedLayerPast::first_valid(std::int64_t remembered) const {
  const auto seen = place_.last + 1 - place_.count;  // (B, 1): number before this call
  return (remembered - seen).clamp_min(0).squeeze(1);
}

}  // namespace nn
