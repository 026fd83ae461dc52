#include "nn/base/batch.h"

#include "nn/base/upload.h"

namespace nn {

TokenPositions TokenPositions::empty() {
  const auto none = torch::empty({0}, torch::kInt64);
  return {none, none, none};
}

TokenPositions TokenPositions::flatten() const {
  return {run.flatten(), segment.flatten(), position.flatten()};
}

TokenPositions TokenPositions::slice(std::int64_t begin, std::int64_t end) const {
  return {run.slice(0, begin, end), segment.slice(0, begin, end), position.slice(0, begin, end)};
}

TokenPositions TokenPositions::concatenate(const std::vector<TokenPositions>& places) {
  return {torch::cat(core::mapped(places, &TokenPositions::run)),
      torch::cat(core::mapped(places, &TokenPositions::segment)),
      torch::cat(core::mapped(places, &TokenPositions::position))};
}

Batch Batch::padding(std::int64_t rows, std::int64_t steps) {
  const auto zeros = [&] { return torch::zeros({rows, steps}, torch::kInt64); };
  Batch batch;
  batch.inputs = zeros();
  batch.targets = zeros();
  batch.weight = torch::zeros({rows, steps});
  batch.fresh = torch::zeros({rows}, torch::kBool);
  batch.place = {torch::full({rows, steps}, -1, torch::kInt64), zeros(), zeros()};
  return batch;
}

Batch Batch::to(torch::Device device) const {
  Batch moved = *this;
  const auto move = [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = upload(tensor, device);
  };
  if (!device.is_cpu()) {
    const auto keep = [](const torch::Tensor& tensor, torch::Tensor& host) {
      if (tensor.defined() && tensor.is_cpu()) host = tensor;
    };
    keep(targets, moved.host_targets);
    keep(weight, moved.host_weight);
    keep(source, moved.host_source);
  }
  move(moved.inputs);
  move(moved.targets);
  move(moved.weight);
  move(moved.source);
  return moved;
}

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
  return core::sum_of(
      tensors, [](const auto& own) { return static_cast<std::int64_t>(own.second.nbytes()); });
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
