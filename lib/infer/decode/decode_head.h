#pragma once
// A plain softmax with packed weights, for decoding.

#include <memory>

#include "infer/decode/decode_kernels.h"
#include "nn/arch/model.h"
#include "nn/heads/plain_head.h"

namespace infer {

/// Computes the log-probabilities of `head` (float32 or bfloat16, on the CPU), which must outlive
/// it, with packed weights; block() is the head's own.
class PackedHead : public nn::Head {
 public:
  /// `cap`: see nn::CappedHead; 0: none.
  PackedHead(std::shared_ptr<nn::Head> head, double cap, Precision precision);

  std::int64_t vocabulary() const override { return head_->vocabulary(); }
  std::vector<torch::Tensor> weights() override { return head_->weights(); }
  std::unique_ptr<nn::HeadBlock> block(const torch::Tensor& f, const nn::Targets& targets,
                                       bool gradient) override {
    return head_->block(f, targets, gradient);
  }
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override { return head_->bytes_per_row(); }

 private:
  std::shared_ptr<nn::Head> head_;
  float cap_;
  PackedMatrix words_;
};

/// Returns the head for decoding: a packed one if the model's head is a plain softmax without
/// biases, else the model's own.
std::shared_ptr<nn::Head> decoding_head(const nn::Model& model, Precision precision);

}  // namespace infer
