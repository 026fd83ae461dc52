#pragma once
// Recurrence of gated linear attention (Yang et al. 2023, "Gated Linear Attention Transformers with
// Hardware-Efficient Training", eq. 3), with a matrix S for each head:
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
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S after the last step
};

/// Computes the recurrence; differentiable in all inputs. A step with k = 0 and log_decay = 0 has
/// no effect. On the CPU it makes one pass forward and two backward, stores no states, and assigns
/// each head of a row to a thread; other devices use gla_scan_chunks.
GlaOutput gla_scan(const GlaInput& in);

/// Computes the recurrence with torch operators in chunks of 64 steps: products within a chunk, and
/// a state for each chunk. Exponents are at most 0 for every decay.
GlaOutput gla_scan_chunks(const GlaInput& in);

/// Computes the recurrence step by step with torch operators: the reference.
GlaOutput gla_scan_plain(const GlaInput& in);

}  // namespace nn
