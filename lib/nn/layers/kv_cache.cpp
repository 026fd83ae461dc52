#include "nn/layers/kv_cache.h"

namespace nn {
namespace {

constexpr std::int64_t kLeast = 64;  // least number of slots of a new buffer

/// Returns the first slot in [begin, end) that is valid in at least one row, or end.
std::int64_t first_used(const torch::Tensor& valid, std::int64_t begin, std::int64_t end) {
  if (begin == end) return end;
  const auto used = valid.narrow(1, begin, end - begin).any(0).nonzero();
  return used.size(0) == 0 ? end : begin + used[0].item<std::int64_t>();
}

/// Copies `old`'s slots [begin, begin + length) to the front of a buffer with `capacity` slots
/// along `dim`. The other slots are zero.
torch::Tensor relocated(const torch::Tensor& old, std::int64_t dim, std::int64_t begin,
    std::int64_t length, std::int64_t capacity) {
  auto sizes = old.sizes().vec();
  sizes[dim] = capacity;
  auto buffer = torch::zeros(sizes, old.options());
  if (length > 0) buffer.narrow(dim, 0, length).copy_(old.narrow(dim, begin, length));
  return buffer;
}

// Returns (B, C): the position that each slot of a ring of `slots` slots holds if `last` (B, 1) is
// the newest position.
torch::Tensor newest(const torch::Tensor& last, std::int64_t slots) {
  return last - (last - torch::arange(slots, last.options())).remainder(slots);
}

}  // namespace

KvCache::KvCache(const Batch& batch, State* state, std::optional<std::int64_t> context)
    : state_(state), steps_(batch.steps()) {
  real_ = batch.place.run >= 0;
  all_valid_ = real_.all().item<bool>();
  // If all rows are alike, one row is enough.
  const bool alike = all_valid_ && state_ == nullptr && real_.size(0) > 0;
  const auto counted = alike ? real_.narrow(0, 0, 1) : real_;
  before_ = counted.cumsum(1) - counted.to(torch::kInt64);
  torch::Tensor seen;
  if (state_ != nullptr) {
    seen = state_->has("seen") ? state_->tensors["seen"].cpu()
                               : torch::zeros({batch.rows()}, torch::kInt64);
    if (seen.size(0) != batch.rows())
      core::bug(
          "a state of {} rows cannot continue with a batch of {} rows", seen.size(0), batch.rows());
    if (batch.fresh.defined()) seen = seen.masked_fill(batch.fresh, 0);
    before_ = before_ + seen.unsqueeze(1);
  }
  before_ = before_.masked_fill(counted.logical_not(), 0);
  if (context && before_.numel() > 0 && before_.max().item<std::int64_t>() >= *context) {
    core::bad_data(
        "a row of {} tokens is longer than the model's {} learned positions; use a smaller window",
        before_.max().item<std::int64_t>() + 1, *context);
  }
  valid_ = real_;
  position_ = before_;
  if (state_ == nullptr) return;
  state_->reset(batch.fresh);
  state_->tensors["seen"] = seen + real_.sum(1);
  open();
}

void KvCache::open() {
  auto& tensors = state_->tensors;
  auto& begin = state_->counts["begin"];
  auto& end = state_->counts["end"];
  if (!state_->has("valid")) {
    tensors["valid"] = torch::zeros({real_.size(0), 0}, torch::kBool);
    tensors["position"] = torch::zeros({real_.size(0), 0}, torch::kInt64);
    begin = end = 0;
  }
  auto& valid = tensors["valid"];
  auto& position = tensors["position"];
  valid = valid.cpu();
  position = position.cpu();

  const bool gradient = torch::GradMode::is_enabled();
  if (end + steps_ > valid.size(1) || gradient) begin = first_used(valid, begin, end);
  begin_ = begin;
  length_ = end - begin;
  relocate_ = end + steps_ > valid.size(1) || gradient;
  capacity_ = valid.size(1);
  if (relocate_) {
    capacity_ = gradient ? slots() : std::max(kLeast, 2 * slots());
    valid = relocated(valid, 1, begin_, length_, capacity_);
    position = relocated(position, 1, begin_, length_, capacity_);
    begin = 0;
  }
  valid.narrow(1, begin + length_, steps_).copy_(real_);
  position.narrow(1, begin + length_, steps_).copy_(before_);
  end = begin + slots();
  valid_ = valid.narrow(1, begin, slots());
  position_ = position.narrow(1, begin, slots());
  all_valid_ = valid_.all().item<bool>();
}

torch::Tensor KvCache::extend(const std::string& name, const torch::Tensor& fresh) {
  if (state_ == nullptr) return fresh;
  auto& buffer = state_->tensors[name];
  if (relocate_) {
    const bool first = !buffer.defined();
    if (torch::GradMode::is_enabled()) {
      buffer =
          first || length_ == 0 ? fresh : torch::cat({buffer.narrow(2, begin_, length_), fresh}, 2);
      return buffer;
    }
    buffer = first ? relocated(fresh, 2, 0, 0, capacity_)
                   : relocated(buffer, 2, begin_, length_, capacity_);
  }
  const auto end = state_->counts["end"];
  buffer.narrow(2, end - steps_, steps_).copy_(fresh);
  return buffer.narrow(2, end - slots(), slots());
}

void KvCache::forget(State& state, std::int64_t keep) {
  if (!state.has("valid")) return;
  auto& begin = state.counts["begin"];
  const auto end = state.counts["end"];
  if (end - begin <= keep) return;
  auto used = state.tensors["valid"].cpu().narrow(1, begin, end - begin);
  const auto newer = used.flip({1}).cumsum(1).flip({1});  // valid slots from here to the end
  used.logical_and_(newer <= keep);
  if (!state.tensors["valid"].is_cpu())
    state.tensors["valid"].narrow(1, begin, end - begin).copy_(used);
  begin = first_used(state.tensors["valid"], begin, end);
}

torch::Tensor KvRing::held() const { return newest(place_.last, slots_); }

torch::Tensor KvRing::extend(const std::string& name, const torch::Tensor& fresh) {
  auto& buffer = buffers_[name];
  if (!buffer.defined()) {
    auto sizes = fresh.sizes().vec();
    sizes[2] = slots_;
    buffer = torch::zeros(sizes, fresh.options());
  }
  const auto slot = place_.slot.unsqueeze(1).unsqueeze(3).expand(fresh.sizes());
  return buffer.scatter_(2, slot, fresh);
}

void KvRing::grow(std::int64_t slots, const torch::Tensor& last) {
  const auto from = newest(last, slots).clamp_min(0).remainder(slots_);  // (B, C)
  for (auto& [name, buffer] : buffers_) {
    auto sizes = buffer.sizes().vec();
    sizes[2] = slots;
    buffer = buffer.gather(2, from.unsqueeze(1).unsqueeze(3).expand(sizes));
  }
  slots_ = slots;
}

void KvRing::select(const torch::Tensor& rows) {
  for (auto& [name, buffer] : buffers_) {
    const auto selected = buffer.index_select(0, rows);
    if (rows.size(0) == buffer.size(0)) {
      buffer.copy_(selected);
    } else {
      buffer = selected;
    }
  }
}

}  // namespace nn
