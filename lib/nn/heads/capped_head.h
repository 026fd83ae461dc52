#pragma once
// A softmax over the whole vocabulary with bounded scores: cap tanh(f W^T / cap) (Gemma 2).

#include <memory>

#include "nn/heads/plain_head.h"

namespace nn {

class CappedHead : public PlainHead {
 public:
  /// Parameters as in PlainHead; cap > 0.
  CappedHead(std::int64_t vocabulary, std::int64_t d_model, double cap);
  CappedHead(const std::shared_ptr<Embedding>& tied, double cap);

  bool linear() const override { return false; }
  std::unique_ptr<HeadBlock> block(const torch::Tensor& f, const Targets& targets,
                                   bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override;

 private:
  double cap_;
};

}  // namespace nn
