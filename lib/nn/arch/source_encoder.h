#pragma once
// Encoder of an encoder-decoder, with attention in both directions.

#include "nn/base/model_options.h"
#include "nn/layers/block_stack.h"
#include "nn/layers/embedding.h"

namespace nn {

/// Blocks of a transformer without the causal mask. Submodules are those of the BlockStack; the
/// embedding is the decoder's. ALiBi uses the absolute distance.
class SourceEncoder : public torch::nn::Module {
 public:
  explicit SourceEncoder(const ModelOptions& options);
  /// Encodes source (B, S) int64, -1 is padding at any position, without effect on other positions;
  /// real (B, S) bool on the CPU marks tokens -> (B, S, d). Throws Error{bad_data} if learned
  /// positions run out.
  torch::Tensor forward(const torch::Tensor& source, const torch::Tensor& real, Embedding& words);
  /// See RecomputingBlocks.
  void recompute_blocks(bool on) { stack_.recompute(on); }

 private:
  Visibility make_visibility(const KvCache& cache, const torch::TensorOptions& options) const;

  BlockStack stack_;
};

/// Returns the mask that hides positions that are not `real` (B, S), bool on the CPU, from every
/// query; no mask if all are real.
Visibility visibility_of_real(const torch::Tensor& real, const torch::TensorOptions& options);

}  // namespace nn
