#pragma once
// The gated delta rule (Yang et al. 2024, "Gated Delta Networks", eq. 10; without decay that of
// Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule"), a matrix S a head:
//
//   S_t = decay_t (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T        o_t = S_t^T q_t
//
// This is a step of training at test time in closed form: S_t is decay_t S_{t-1} after one step of
// gradient descent, at the rate beta_t, on 1/2 |S^T k_t - v_t|^2. With |k| = 1 and beta = 1 the
// matrix then gives v_t for k_t, whatever it gave before.

#include "nn/base/torch.h"

namespace nn {

struct DeltaInput {
  torch::Tensor q, k;             ///< (B, T, heads, d_key); |k| at most 1
  torch::Tensor v;                ///< (B, T, heads, d_value)
  torch::Tensor beta, log_decay;  ///< (B, T, heads): from 0 to 1; at most 0
  torch::Tensor start;            ///< (B, heads, d_key, d_value): S before the first step
};

struct DeltaOutput {
  torch::Tensor o;      ///< (B, T, heads, d_value)
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S behind the last step
};

/// Differentiable in all of them. A step with beta = 0 and log_decay = 0 changes nothing. In
/// float32 at least, in chunks, with a backward of its own that keeps nothing but the inputs: on
/// the CPU a head of a row a thread; on a GPU by the plug-in's kernels, whose backward has the
/// states between all chunks and their gradients in memory while it runs; elsewhere
/// delta_scan_chunks.
DeltaOutput delta_scan(const DeltaInput& in);

/// The same in torch's operators, in chunks of 64 steps, a triangular system and a state a chunk;
/// in float32 at least, also where autocast is on. Exponents are at most 0 whatever the decay.
DeltaOutput delta_scan_chunks(const DeltaInput& in);

/// The same step by step in torch's operators: the reference.
DeltaOutput delta_scan_plain(const DeltaInput& in);

}  // namespace nn
