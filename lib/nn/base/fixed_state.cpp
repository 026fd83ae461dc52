#include "nn/base/fixed_state.h"

namespace nn {

bool FixedState::take(const State& made) {
  const torch::NoGradGuard no_gradient;
  bool stayed = made.tensors.size() == state_.tensors.size();
  for (const auto& [name, tensor] : made.tensors) {
    auto& kept = state_.tensors[name];
    const bool alike = kept.defined() && kept.sizes() == tensor.sizes() &&
                       kept.scalar_type() == tensor.scalar_type() &&
                       kept.device() == tensor.device();
    if (!alike) {
      kept = tensor.clone();
    } else if (!kept.is_same(tensor)) {
      kept.copy_(tensor);
    }
    stayed &= alike;
  }
  state_.counts = made.counts;
  state_.by_step = made.by_step;
  return stayed;
}

bool FixedState::select(const torch::Tensor& rows) {
  State chosen = state_;
  chosen.select(rows);
  return take(chosen);
}

}  // namespace nn
