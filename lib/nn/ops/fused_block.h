#pragma once
// A whole pre-norm transformer block as one autograd function on the CPU.

#include <cstdint>

#include "nn/base/torch.h"

namespace nn {

/// Parameters of a block, torch's (out, in) layout, float32. Undefined tensors: no bias.
struct BlockWeights {
  torch::Tensor norm1, norm1_bias;      ///< (d)
  torch::Tensor qkv, qkv_bias;          ///< (3 d, d), (3 d)
  torch::Tensor project, project_bias;  ///< (d, d), (d)
  torch::Tensor norm2, norm2_bias;      ///< (d)
  torch::Tensor expand, expand_bias;    ///< (inner, d), (inner)
  torch::Tensor reduce, reduce_bias;    ///< (d, inner), (d)
};

struct BlockShape {
  std::int64_t heads = 1;
  bool gelu = true;  ///< in its tanh form; else ReLU
  double norm_epsilon = 1e-5;
  double residual_dropout = 0;  ///< after the projection and after the FFN
  std::uint64_t seed = 0;       ///< of this call's dropout masks
};

/// True if fused_block computes what the modules would: CPU, float32 (products too: no autocast),
/// contiguous, at least one sequence a thread.
bool fused_block_fits(const torch::Tensor& x);

struct BlockOutput {
  torch::Tensor y;          ///< (B, T, d)
  torch::Tensor ffn_input;  ///< (B, T, d): the second norm's output; undefined unless asked for
};

/// x (B, T, d) -> x + attention(norm1(x)) -> + ffn(norm2(.)), causal attention over T.
/// Differentiable in x and all weights. One loop over sequences, one sequence a thread, with
/// single-threaded products inside; kept for the backward pass are q, k, v, the attention's output,
/// the middle of the residual stream and the FFN's pre-activation; norms, GELU and attention
/// weights are computed again. Same threads, same bytes.
BlockOutput fused_block(const torch::Tensor& x, const BlockWeights& weights,
                        const BlockShape& shape, bool want_ffn_input);

}  // namespace nn
