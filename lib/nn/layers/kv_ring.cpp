#include "nn/layers/kv_ring.h"

namespace nn {
namespace {

// Returns (B, C): the position that each slot of a ring of `slots` slots holds if `last` (B, 1) is
// the newest position.
torch::Tensor newest(const torch::Tensor& last, std::int64_t slots) {
  return last - (last - torch::arange(slots, last.options())).remainder(slots);
}

}  // namespace

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
