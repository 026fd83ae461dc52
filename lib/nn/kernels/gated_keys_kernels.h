#pragma once
// Time loops of Memory Mosaics v2's keys and their CUDA versions. The CPU loops compute one
// sequence at a time, vectorised over channels. See ops/leaky.h for the formulas.

#include <cstdint>

namespace nn {

/// B sequences of T steps of d = heads * width channels. Channels of x are contiguous; its strides
/// are x_step and x_row. All other arrays are contiguous.
template <class Real> struct GatedInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *gate, *decay;     // (B, T, heads), logarithms; decay <= 0
  const Real *before, *levels;  // (B, d), (B, heads): carried sums and their levels
};

/// Outputs of the forward pass: keys (B, T, d), and (B, T, heads) arrays of norms, levels and the
/// two factors of sums_t = own_t x_t + kept_t sums_{t-1}.
template <class Real> struct GatedOutputs { Real *keys, *norms, *levels, *own, *kept; };

/// Gradients. Inputs: d_keys, d_sums (B, T, d); one of them may be null. Outputs: dx (B, T, d),
/// d_gate and d_decay (B, T, heads), d_before (B, d).
template <class Real> struct GatedGradients {
  const Real *d_keys, *d_sums;
  Real *dx, *d_gate, *d_decay, *d_before;
};

/// Computes sequence `row`.
template <class Real>
void gated_keys_forward_cpu(
    const GatedInputs<Real>& in, const GatedOutputs<Real>& out, std::int64_t row);
/// Computes the gradients of gated_keys_forward_cpu(), which wrote `made`. Gates, decays and levels
/// are not read.
template <class Real>
void gated_keys_backward_cpu(const GatedInputs<Real>& in, const GatedOutputs<Real>& made,
    const GatedGradients<Real>& g, std::int64_t row);

/// Compute all sequences. All pointers are device pointers and `stream` is a cudaStream_t. Both
/// return a cudaError_t, 0 if the launches succeed.
int gated_keys_forward_cuda(
    const GatedInputs<float>& in, const GatedOutputs<float>& out, void* stream);
int gated_keys_backward_cuda(const GatedInputs<float>& in, const GatedOutputs<float>& made,
    const GatedGradients<float>& g, void* stream);

}  // namespace nn
