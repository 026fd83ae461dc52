#pragma once
// A plain softmax with packed weights, for decoding.

#include <memory>

#include "infer/decode/decode_kernels.h"
#include "infer/decode/packed_model.h"
#include "nn/arch/model.h"
#include "nn/heads/plain_head.h"

namespace infer {

/// Computes the log-probabilities of `head` (float32 or bfloat16, on the CPU), which must outlive
/// it, with packed weights. block() is the head's own; without its numbers it has no backward().
class PackedHead : public nn::Head {
 public:
  /// `cap`: see nn::CappedHead; 0: none. `packed`: see decoding_head().
  PackedHead(std::shared_ptr<nn::Head> head, double cap, Precision precision,
             const PackedModel* packed = nullptr);

  std::int64_t vocabulary() const override { return head_->vocabulary(); }
  std::vector<torch::Tensor> weights() override { return head_->weights(); }
  std::unique_ptr<nn::HeadBlock> block(const torch::Tensor& f, const nn::Targets& targets,
                                       bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override { return head_->bytes_per_row(); }

 private:
  std::shared_ptr<nn::Head> head_;
  float cap_;
  bool taken_ = false;  // head_ has no numbers
  PackedMatrix words_;
};

/// Returns whether the model's head is a plain softmax without biases.
bool packs_head(const nn::Model& model);
/// Returns the head for decoding: a packed one if packs_head(), else the model's own. `packed`
/// (null: none) has the matrices that were taken from the model.
std::shared_ptr<nn::Head> decoding_head(const nn::Model& model, Precision precision,
                                        const PackedModel* packed = nullptr);

}  // namespace infer
