#pragma once
// A softmax over the whole vocabulary: logits = f W^T.

#include <memory>

#include "nn/base/head.h"
#include "nn/layers/embedding.h"

namespace nn {

class PlainHead : public Head {
 public:
  /// A matrix of its own, (vocabulary, d_model), named "weight".
  PlainHead(std::int64_t vocabulary, std::int64_t d_model);
  /// Shares the one table of a plain embedding.
  explicit PlainHead(const std::shared_ptr<Embedding>& tied);

  std::int64_t vocabulary() const override { return weight_.size(0); }
  bool linear() const override { return true; }
  std::vector<torch::Tensor> weights() override { return {weight_}; }
  std::unique_ptr<HeadBlock> block(const torch::Tensor& f, const Targets& targets,
                                   bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override;

 private:
  torch::Tensor weight_;
};

}  // namespace nn
