#pragma once
// Recurrence of gated linear attention (Yang et al. 2023, "Gated Linear Attention Transformers with
// Hardware-Efficient Training", eq. 3), with a matrix S for each head:
//
//   S_t = diag(decay_t) S_{t-1} + k_t v_t^T        o_t = S_t^T q_t
// Helpers of recurrences with a matrix for each head: addresses, and loops over heads.
// The gated delta rule (Yang et al. 2024, "Gated Delta Networks", eq. 10; without decay, Yang et
// al. 2024, "Parallelizing Linear Transformers with the Delta Rule"), with a matrix S for each
// head:
//
//   S_t = decay_t (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T        o_t = S_t^T q_t
//
// This is a step of test-time training in closed form: S_t is decay_t S_{t-1} after one step of
// gradient descent with rate beta_t on 1/2 |S^T k_t - v_t|^2. With |k| = 1 and beta = 1, the matrix
// then maps k_t to v_t.

#include "nn/ops/host_loops.h"

namespace nn {

struct GlaInput {
  torch::Tensor q, k;       ///< (B, T, heads, d_key), or (B, T, 1, d_key) for all heads
  torch::Tensor log_decay;  ///< (B, T, heads, d_key), or (B, T, heads, 1) for all channels
  torch::Tensor v;          ///< (B, T, heads, d_value)
  torch::Tensor start;      ///< (B, heads, d_key, d_value): S before the first step
};

struct GlaOutput {
  torch::Tensor o;      ///< (B, T, heads, d_value)
  torch::Tensor state;  ///< (B, heads, d_key, d_value): S after the last step
};

/// Computes the recurrence; differentiable in all inputs. A step with k = 0 and log_decay = 0 has
/// no effect. On the CPU it makes one pass forward and two backward, stores no states, and assigns
/// each head of a row to a thread; other devices, and what heads or channels share, use
/// gla_scan_chunks.
GlaOutput gla_scan(const GlaInput& in);

/// Computes the recurrence with torch operators in chunks of 64 steps: products within a chunk, and
/// a state for each chunk. Exponents are at most 0 for every decay.
GlaOutput gla_scan_chunks(const GlaInput& in);

/// Computes the recurrence step by step with torch operators: the reference.
GlaOutput gla_scan_plain(const GlaInput& in);

/// Calls f(Real(), row, head) for steps (B, T, heads, ...), in all threads.
template <class F> void each_head(const torch::Tensor& steps, const F& f) {
  const auto heads = steps.size(2);
  in_threads(steps, steps.size(0) * heads,
      [&](auto real, std::int64_t i) { f(real, i / heads, i % heads); });
}

/// Returns a head's matrix of a row in states (B, heads, d_key, d_value).
template <class Float>
Float* matrix_of(const torch::Tensor& states, std::int64_t row, std::int64_t head) {
  return states.data_ptr<Float>() + row * states.stride(0) + head * states.stride(1);
}

/// Returns a head's part of a row in steps (B, T, heads, ...).
template <class Float>
Float* part_of(const torch::Tensor& steps, std::int64_t row, std::int64_t head) {
  return steps.data_ptr<Float>() + row * steps.stride(0) + head * steps.stride(2);
}

/// Returns cumulative sums over dimension 3 of 5, by shifts of 1, 2, 4, ..., because CUDA's cumsum
/// may not be bit-reproducible.
inline torch::Tensor sums_so_far(torch::Tensor x) {
  for (std::int64_t shift = 1; shift < x.size(3); shift *= 2)
    x = x + at::constant_pad_nd(x.narrow(3, 0, x.size(3) - shift), {0, 0, shift, 0});
  return x;
}

/// Divides steps (B, T, heads, width) into chunks, zero-padding the last: (B, heads, chunks, chunk,
/// width).
inline torch::Tensor in_chunks(const torch::Tensor& x, std::int64_t chunk) {
  const auto steps = x.size(1), chunks = (steps + chunk - 1) / chunk,
             missing = chunks * chunk - steps;
  const auto whole = missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, 0, 0, missing}) : x;
  return whole.reshape({x.size(0), chunks, chunk, x.size(2), x.size(3)}).permute({0, 3, 1, 2, 4});
}

/// Inverts in_chunks and returns the first `steps` steps.
inline torch::Tensor from_chunks(const torch::Tensor& x, std::int64_t steps) {
  return x.permute({0, 2, 3, 1, 4})
      .reshape({x.size(0), x.size(2) * x.size(3), x.size(1), x.size(4)})
      .narrow(1, 0, steps);
}

struct DeltaInput {
  torch::Tensor q, k;             ///< (B, T, heads, d_key); |k| at most 1
  torch::Tensor v;                ///< (B, T, heads, d_value)
  torch::Tensor beta, log_decay;  ///< (B, T, heads): from 0 to 1; at most 0
  torch::Tensor start;            ///< (B, heads, d_key, d_value): S before the first step
};

using DeltaOutput = GlaOutput;

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

}  // namespace nn
