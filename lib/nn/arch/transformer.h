#pragma once
// Decoder-only transformer, with shapes from GPT-2's to fairseq's.

#include <memory>
#include <utility>
#include <vector>

#include "nn/arch/decoder_stack.h"

namespace nn {

class Transformer : public DecoderStack, public WatchedAttention, public LendingBlocks {
 public:
  /// Throws Error{bad_config} that names the option.
  Transformer(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} if learned positions run out.
  Hidden forward(const Batch& batch, State* state) override;
  std::vector<std::vector<torch::Tensor>> block_weights() const override {
    return stack_.block_weights();
  }
  void lend_weights(std::shared_ptr<WeightLender> lender) override {
    stack_.lend_weights(std::move(lender));
  }
};

}  // namespace nn
