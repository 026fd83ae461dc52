#pragma once
// Decoder-only transformer, with shapes from GPT-2's to fairseq's.

#include "nn/arch/decoder_stack.h"

namespace nn {

class Transformer : public DecoderStack, public WatchedAttention {
 public:
  /// Throws Error{bad_config} that names the option.
  Transformer(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} if learned positions run out.
  Hidden forward(const Batch& batch, State* state) override;
};

}  // namespace nn
