#include "train/fixed_micro_batch.h"

namespace train {
namespace {

torch::Tensor ranks(const torch::Tensor& ids) {
  return std::get<1>(at::_unique(ids, /*sorted=*/true, /*return_inverse=*/true));
}

// Numbers ids 0, 1, ... in the order of their first appearance.
torch::Tensor by_appearance(const torch::Tensor& ids) {
  const auto number = ranks(ids);
  const auto first = torch::full({ids.numel()}, INT64_MAX, torch::kInt64)
                         .scatter_reduce(0, number.flatten(), torch::arange(ids.numel()), "amin");
  return first.argsort().argsort().index({number});
}

// Renumbers the places, so that they do not depend on the batch's position in the data. Runs are
// numbered in order and no run sees another. A run's segments are numbered in order. Positions
// count from the first of the run.
nn::TokenPositions own_numbers(const nn::TokenPositions& place) {
  const auto run = by_appearance(place.run);
  const auto first = torch::full({run.numel()}, INT64_MAX, torch::kInt64)
                         .scatter_reduce(0, run.flatten(), place.position.flatten(), "amin");
  const auto segment = ranks(run * run.numel() + ranks(place.segment));
  return {run, segment, place.position - first.index({run})};
}

bool same(const nn::TokenPositions& a, const nn::TokenPositions& b) {
  return torch::equal(a.run, b.run) && torch::equal(a.segment, b.segment) &&
         torch::equal(a.position, b.position);
}

bool like(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

torch::Tensor& gradient_of(const torch::Tensor& weight) {
  return torch::Tensor(weight).mutable_grad();
}

}  // namespace

bool FixedMicroBatch::fits(const nn::ModelOptions& options) {
  return options.arch == "transformer" && options.vocabulary.cutoffs.empty() &&
         options.plain_layers();
}

bool FixedMicroBatch::takes(const nn::Batch& batch) {
  if (!batch.dense() || batch.source.defined()) return false;
  const auto place = own_numbers(batch.place);
  if (!batch_.inputs.defined()) {
    batch_ = batch;
    batch_.place = place;
    for (auto* each : {&batch_.inputs, &batch_.targets, &batch_.weight})
      *each = torch::empty_like(*each);
    batch_.host_targets = batch_.host_weight = torch::Tensor();
  }
  return like(batch.inputs, batch_.inputs) && like(batch.weight, batch_.weight) &&
         same(place, batch_.place);
}

torch::Tensor FixedMicroBatch::run(const nn::Batch& batch, const Work& work) {
  batch_.inputs.copy_(batch.inputs);
  batch_.targets.copy_(batch.targets);
  batch_.weight.copy_(batch.weight);
  std::vector<torch::Tensor> before;
  for (const auto& [name, weight] : weights_) before.push_back(gradient_of(weight));
  sequence_.run([&] {
    for (const auto& [name, weight] : weights_) gradient_of(weight).reset();
    result_ = work(batch_);
    gradients_.clear();
    for (const auto& [name, weight] : weights_) gradients_.push_back(gradient_of(weight));
  });
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    auto& gradient = gradient_of(weights_[i].second);
    gradient = before[i];
    if (!gradients_[i].defined()) continue;
    gradient = gradient.defined() ? gradient.add_(gradients_[i]) : gradients_[i].clone();
  }
  return result_.clone();
}

}  // namespace train
