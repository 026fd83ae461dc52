#pragma once
// A softmax over the whole vocabulary: logits = f W^T, + b.
// A softmax over the whole vocabulary with bounded scores: cap tanh(f W^T / cap) (Gemma 2).

#include "nn/base/architecture.h"
#include "nn/layers/embedding.h"

namespace nn {

class PlainHead : public Head {
 public:
  /// Owns a matrix (vocabulary, d_model) named "weight" and, with `bias`, a vector (vocabulary)
  /// named "bias".
  PlainHead(std::int64_t vocabulary, std::int64_t d_model, bool bias = false);
  /// Shares the single table of a plain embedding.
  explicit PlainHead(const std::shared_ptr<Embedding>& tied, bool bias = false);

  std::int64_t vocabulary() const override { return weight_.size(0); }
  bool linear() const override { return !bias_.defined(); }
  std::vector<torch::Tensor> weights() override;
  std::unique_ptr<HeadBlock> block(
      const torch::Tensor& f, const Targets& targets, bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override;

 private:
  void add_bias(bool bias);
  torch::Tensor weight_, bias_;  // bias_: undefined without a bias
};

class CappedHead : public PlainHead {
 public:
  /// Parameters as in PlainHead; cap > 0.
  CappedHead(std::int64_t vocabulary, std::int64_t d_model, double cap);
  CappedHead(const std::shared_ptr<Embedding>& tied, double cap);

  bool linear() const override { return false; }
  std::unique_ptr<HeadBlock> block(
      const torch::Tensor& f, const Targets& targets, bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override;

 private:
  double cap_;
};

}  // namespace nn
