#pragma once
// A complete pre-norm transformer block as one autograd function on the CPU.

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/kernels/fused_block_kernels.h"

namespace nn {

/// Parameters of a block in torch's (out, in) layout, float32. Undefined bias: none.
struct BlockWeights {
  torch::Tensor norm1, norm1_bias;      ///< (d)
  torch::Tensor qkv, qkv_bias;          ///< (d_all, d), (d_all): queries, keys, values
  torch::Tensor project, project_bias;  ///< (d, d_query), (d)
  torch::Tensor norm2, norm2_bias;      ///< (d)
  torch::Tensor expand, expand_bias;    ///< (inner, d), (inner); twice the rows if gated
  torch::Tensor reduce, reduce_bias;    ///< (d, inner), (d)
};

struct BlockShape {
  HeadShape heads{1, 1, 1, 0};
  InnerActivation activation = InnerActivation::gelu;
  double attention_scale = 1;  ///< factor on query-key products
  bool gated = false;          ///< the network reduces activation(first half of expand's output) *
                               ///< second half
  bool rms = false;            ///< RMS norms instead of layer norms
  double norm_epsilon = 1e-5;
  torch::Tensor cos, sin;  ///< (B or 1, 1, T, rotated / 2) of rotary embeddings; undefined: none
  double residual_dropout = 0;   ///< after the projection and after the feed-forward network
  double attention_dropout = 0;  ///< on attention weights
  std::uint64_t seed = 0;        ///< of this call's dropout masks
};

/// Returns whether fused_block supports the input: CPU, float32 without autocast, contiguous, at
/// least one sequence for each thread.
bool fused_block_fits(const torch::Tensor& x);

struct BlockOutput {
  torch::Tensor y;          ///< (B, T, d)
  torch::Tensor ffn_input;  ///< (B, T, d): the second norm's output; undefined unless requested
};

/// Computes x + attention(norm1(x)), then + ffn(norm2(.)), for x (B, T, d) with causal attention
/// over T. With fewer key-value heads than query heads, consecutive query heads share one.
/// Differentiable in x and all weights. Each thread processes whole sequences with single-threaded
/// products. Stores q, k, v, the attention's output, the residual stream after attention and the
/// pre-activation for the backward pass, and recomputes norms, activations and attention weights.
/// Bit-reproducible for a fixed number of threads.
BlockOutput fused_block(const torch::Tensor& x, const BlockWeights& weights,
    const BlockShape& shape, bool want_ffn_input);

}  // namespace nn
