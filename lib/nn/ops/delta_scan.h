#pragma once
// The gated delta rule (Yang et al. 2024, "Gated Delta Networks", eq. 10; without decay, Yang et
// al. 2024, "Parallelizing Linear Transformers with the Delta Rule"), with a matrix S for each
// head:
//
//   S_t = decay_t (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T        o_t = S_t^T q_t
//
// This is a step of test-time training in closed form: S_t is decay_t S_{t-1} after one step of
// gradient descent with rate beta_t on 1/2 |S^T k_t - v_t|^2. With |k| = 1 and beta = 1, the matrix
// then maps k_t to v_t.

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
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S after the last step
};

/// Computes the recurrence; differentiable in all inputs. A step with beta = 0 and log_decay = 0
/// has no effect. Uses at least float32 and chunks, with a backward pass that stores only the
/// inputs. On the CPU each thread computes a head of a row. On a GPU the plug-in's kernels compute
/// all; their backward pass allocates the states between all chunks and their gradients. Other
/// devices use delta_scan_chunks.
DeltaOutput delta_scan(const DeltaInput& in);

/// Computes the recurrence with torch operators in chunks of 64 steps, each with a triangular
/// system and a state; at least float32, also under autocast. Exponents are at most 0 for every
/// decay.
DeltaOutput delta_scan_chunks(const DeltaInput& in);

/// Computes the recurrence step by step with torch operators: the reference.
DeltaOutput delta_scan_plain(const DeltaInput& in);

}  // namespace nn
