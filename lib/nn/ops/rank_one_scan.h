#pragma once
// Recurrence with a matrix S for each head that decays by channel and changes along one direction
// (RWKV-7, Peng et al. 2025, arXiv 2503.14456, eq. 18, transposed):
//
//   S_t = diag(decay_t) S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T        o_t = S_t^T q_t

#include "nn/base/torch.h"

namespace nn {

struct RankOneInput {
  torch::Tensor q, k, a, b;  ///< (B, T, heads, d_key)
  torch::Tensor log_decay;   ///< (B, T, heads, d_key), at most 0; from -1 if not `strong`
  torch::Tensor v;           ///< (B, T, heads, d_value)
  torch::Tensor start;       ///< (B, heads, d_key, d_value): S before the first step
  bool strong = false;       ///< decays below e^-15 (float64: e^-40) count as that
};

struct RankOneOutput {
  torch::Tensor o;      ///< (B, T, heads, d_value)
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S after the last step
};

/// Computes the recurrence with torch operators in chunks of at most 32 steps (strong: 4, float64:
/// 16), each with a triangular system; at least float32, also under autocast. Differentiable in all
/// inputs. A step with k = b = 0 and log_decay = 0 has no effect.
RankOneOutput rank_one_scan(const RankOneInput& in);

}  // namespace nn
