#pragma once
// A whole pre-norm transformer block as one autograd function on the CPU.

#include <cstdint>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/kernels/fused_block_kernels.h"

namespace nn {

/// Parameters of a block, torch's (out, in) layout, float32. Undefined tensors: no bias.
struct BlockWeights {
  torch::Tensor norm1, norm1_bias;      ///< (d)
  torch::Tensor qkv, qkv_bias;          ///< (d_all, d), (d_all): queries, keys, values
  torch::Tensor project, project_bias;  ///< (d, d_query), (d)
  torch::Tensor norm2, norm2_bias;      ///< (d)
  torch::Tensor expand, expand_bias;    ///< (inner, d), (inner); gated, twice as much
  torch::Tensor reduce, reduce_bias;    ///< (d, inner), (d)
};

struct BlockShape {
  HeadShape heads{1, 1, 1, 0};
  InnerActivation activation = InnerActivation::gelu;
  double attention_scale = 1;  ///< of products of queries and keys
  bool gated = false;          ///< activation(first half of expand's) * second half is reduced
  bool rms = false;            ///< RMS norms, else layer norms
  double norm_epsilon = 1e-5;
  torch::Tensor cos, sin;  ///< (B or 1, 1, T, rotated / 2) of rotary positions; undefined: none
  double residual_dropout = 0;   ///< after the projection and after the FFN
  double attention_dropout = 0;  ///< on attention's weights
  std::uint64_t seed = 0;        ///< of this call's dropout masks
};

/// True if fused_block computes what the modules would: CPU, float32 (products too: no autocast),
/// contiguous, at least one sequence a thread.
bool fused_block_fits(const torch::Tensor& x);

struct BlockOutput {
  torch::Tensor y;          ///< (B, T, d)
  torch::Tensor ffn_input;  ///< (B, T, d): the second norm's output; undefined unless asked for
};

/// x (B, T, d) -> x + attention(norm1(x)) -> + ffn(norm2(.)), causal attention over T; with fewer
/// heads of keys and values than of queries each is read by as many of those, in turn.
/// Differentiable in x and all weights. One loop over sequences, one sequence a thread, with
/// single-threaded products inside; kept for the backward pass are q, k, v, the attention's output,
/// the middle of the residual stream and the FFN's pre-activation; norms, activations and attention
/// weights are computed again. Same threads, same bytes.
BlockOutput fused_block(const torch::Tensor& x, const BlockWeights& weights,
                        const BlockShape& shape, bool want_ffn_input);

}  // namespace nn
