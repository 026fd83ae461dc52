#pragma once
// Loops over time of Memory Mosaics v2's keys: on the CPU sequence by sequence, vectorised over
// channels, and their CUDA twins. See ops/gated_keys.h for the formulas.

#include <cstdint>

namespace nn {

/// B sequences of T steps of d = heads * width channels. Channels of x are contiguous, its steps
/// x_step apart and its sequences x_row; everything else is contiguous.
template <class Real>
struct GatedInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *gate, *decay;     // (B, T, heads), logarithms; decay is at most 0
  const Real *before, *levels;  // (B, d), (B, heads): the sums carried in and their levels
};

/// What the forward pass writes: keys (B, T, d), and (B, T, heads): norms of the sums, their
/// levels, and the shares of x_t and of the sums before it: sums_t = own_t x_t + kept_t sums_{t-1}.
template <class Real>
struct GatedOutputs {
  Real *keys, *norms, *levels, *own, *kept;
};

/// d_keys, d_sums (B, T, d), of which one may be null. Written: dx (B, T, d), d_gate and d_decay
/// (B, T, heads), d_before (B, d).
template <class Real>
struct GatedGradients {
  const Real *d_keys, *d_sums;
  Real *dx, *d_gate, *d_decay, *d_before;
};

/// Sequences [begin, end).
template <class Real>
void gated_keys_forward_cpu(const GatedInputs<Real>& in, const GatedOutputs<Real>& out,
                            std::int64_t begin, std::int64_t end);
/// Gradients of the above, which wrote `made`; gates, decays and levels are not looked at.
template <class Real>
void gated_keys_backward_cpu(const GatedInputs<Real>& in, const GatedOutputs<Real>& made,
                             const GatedGradients<Real>& g, std::int64_t begin, std::int64_t end);

/// All sequences, pointers being the device's. `stream` is a cudaStream_t. Return a cudaError_t, 0
/// if the launches went well.
int gated_keys_forward_cuda(const GatedInputs<float>& in, const GatedOutputs<float>& out,
                            void* stream);
int gated_keys_backward_cuda(const GatedInputs<float>& in, const GatedOutputs<float>& made,
                             const GatedGradients<float>& g, void* stream);

}  // namespace nn
