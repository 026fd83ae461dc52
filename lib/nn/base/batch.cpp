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
  std::vector<torch::Tensor> run, segment, position;
  for (const auto& place : places) {
    run.push_back(place.run);
    segment.push_back(place.segment);
    position.push_back(place.position);
  }
  return {torch::cat(run), torch::cat(segment), torch::cat(position)};
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

bool Batch::dense() const { return !(place.run < 0).any().item<bool>(); }

}  // namespace nn
