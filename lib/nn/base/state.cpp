#include "nn/base/state.h"

#include "nn/base/upload.h"

namespace nn {

void State::select(const torch::Tensor& rows) {
  for (auto& [name, tensor] : tensors)
    tensor = tensor.index_select(row_dimension(name), upload(rows, tensor.device()));
}

void State::reset(const torch::Tensor& fresh) {
  if (!fresh.defined() || !fresh.any().item<bool>()) return;
  const auto rows = fresh.nonzero().flatten();
  for (auto& [name, tensor] : tensors) {
    const auto at = upload(rows, tensor.device());
    if (tensor.requires_grad())
      tensor = tensor.index_fill(row_dimension(name), at, 0);  // the other rows keep their gradient
    else tensor.index_fill_(row_dimension(name), at, 0);
  }
}

void State::detach() {
  for (auto& [name, tensor] : tensors) tensor = tensor.detach();
}

void State::to(torch::Device device) {
  for (auto& [name, tensor] : tensors) tensor = tensor.to(device);
}

std::int64_t State::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

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
