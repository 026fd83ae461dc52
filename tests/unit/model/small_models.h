#pragma once
// Models small enough for a test, initialised at random.

#include <memory>

#include "nn/arch/model.h"

inline nn::ModelOptions small_gpt2() {
  nn::ModelOptions options;
  options.shape.layers = 2;
  options.shape.d_model = 16;
  options.shape.heads = 2;
  options.transformer.context = 24;
  options.shape.init = "gpt2";
  options.vocabulary.scale_embedding = false;
  return options;
}

/// Far from GPT-2's shape: ALiBi, post-norm, adaptive.
inline nn::ModelOptions small_adaptive() {
  nn::ModelOptions options = small_gpt2();
  options.transformer.positions = "alibi";
  options.transformer.norm = "post";
  options.transformer.activation = "relu";
  options.vocabulary.cutoffs = {20, 40};
  options.vocabulary.factor = 2;
  return options;
}

inline std::shared_ptr<nn::Model> random_model(
    const nn::ModelOptions& options, std::int64_t vocabulary = 64) {
  torch::manual_seed(5);
  auto model = std::make_shared<nn::Model>(options, vocabulary);
  const torch::NoGradGuard no_grad;
  for (auto& [name, weight] : model->named_weights())
    torch::Tensor(weight).add_(.05 * torch::randn_like(weight));
  model->eval();
  return model;
}

/// Returns one row, in which each token after the first is predicted.
inline nn::Batch batch_of(const torch::Tensor& ids) {
  const auto n = ids.numel() - 1;
  nn::Batch batch;
  batch.inputs = ids.slice(0, 0, n).unsqueeze(0);
  batch.targets = ids.slice(0, 1).unsqueeze(0);
  batch.weight = torch::ones({1, n});
  batch.place.run = torch::zeros({1, n}, torch::kInt64);
  batch.place.segment = torch::zeros({1, n}, torch::kInt64);
  batch.place.position = torch::arange(n).unsqueeze(0);
  batch.fresh = torch::ones({1}, torch::kBool);
  return batch;
}

/// Returns the mean negative log-likelihood of each token after the first, in nats.
inline double loss_of(nn::Model& model, const torch::Tensor& ids) {
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of(ids);
  const auto hidden = model.architecture->forward(batch, nullptr);
  const auto block = model.head->block(hidden.output.squeeze(0), batch.targets.squeeze(0), false);
  return -block->log_prob.mean().item<double>();
}

inline torch::Tensor some_ids(std::int64_t vocabulary = 64, std::int64_t n = 20) {
  return (torch::arange(n) * 7 + 3) % vocabulary;
}
