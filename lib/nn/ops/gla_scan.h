#pragma once
// The recurrence of gated linear attention (Yang et al. 2023, "Gated Linear Attention Transformers
// with Hardware-Efficient Training", eq. 3), a matrix S a head:
//
//   S_t = diag(decay_t) S_{t-1} + k_t v_t^T        o_t = S_t^T q_t

#include "nn/base/torch.h"

namespace nn {

struct GlaInput {
  torch::Tensor q, k, log_decay;  ///< (B, T, heads, d_key)
  torch::Tensor v;                ///< (B, T, heads, d_value)
  torch::Tensor start;            ///< (B, heads, d_key, d_value): S before the first step
};

struct GlaOutput {
  torch::Tensor o;      ///< (B, T, heads, d_value)
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S behind the last step
};

/// Differentiable in all of them. A step with k = 0 and log_decay = 0 changes nothing. On the CPU
/// one pass over the steps, its own backward in two, no state stored, a head of a row a thread;
/// elsewhere gla_scan_chunks.
GlaOutput gla_scan(const GlaInput& in);

/// The same in torch's operators, in chunks of 64 steps: products within a chunk, a state a chunk.
/// Exponents are at most 0 whatever the decay.
GlaOutput gla_scan_chunks(const GlaInput& in);

/// The same step by step in torch's operators: the reference.
GlaOutput gla_scan_plain(const GlaInput& in);

}  // namespace nn
