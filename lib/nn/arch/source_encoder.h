#pragma once
// The encoder of an encoder-decoder: every token of a source sees every other.

#include "nn/base/model_options.h"
#include "nn/layers/block_stack.h"
#include "nn/layers/embedding.h"

namespace nn {

/// The blocks of a transformer without the causal mask. Submodules: those of the BlockStack; the
/// words' vectors are the decoder's. ALiBi counts the distance to both sides alike.
class SourceEncoder : public torch::nn::Module {
 public:
  explicit SourceEncoder(const ModelOptions& options);
  /// source (B, S) int64, -1 is padding, which may stand anywhere and changes nothing; real (B, S)
  /// bool on the CPU: what is none -> (B, S, d). Throws Error{bad_data} where learned positions run
  /// out.
  torch::Tensor forward(const torch::Tensor& source, const torch::Tensor& real, Embedding& words);
  /// See RecomputingBlocks.
  void recompute_blocks(bool on) { stack_.recompute(on); }

 private:
  Sight make_sight(const KvCache& cache, const torch::TensorOptions& options) const;

  BlockStack stack_;
};

/// Hides what is not `real` (B, S) bool on the CPU from every query; none if all are real.
Sight sight_of_real(const torch::Tensor& real, const torch::TensorOptions& options);

}  // namespace nn
