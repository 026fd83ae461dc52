#pragma once
// Time loops of Memory Mosaics' keys and values. The CPU loops compute one sequence at a time,
// vectorised over channels. The CUDA kernels use a block per head of a sequence. See leaky.h for
// the formulas.

#include <cstdint>

namespace nn {

/// Added to squared norms, so that the norm of a zero vector is not zero.
inline constexpr double kNormFloor = 1e-12;

/// B sequences of T steps of d = heads * width channels. Channels of x are contiguous; its strides
/// are x_step and x_row. All other arrays are contiguous.
template <class Real> struct LeakyInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *decay, *scale;  // (heads)
  const Real* before;         // (B, d), or null for zeros
};

/// Gradients. Inputs: d_keys, d_sums (B, T, d); one of them may be null. Outputs: dx (B, T, d),
/// d_before (B, d) or null if before is null, and d_decay, d_scale (B, heads). d_decay and d_scale
/// are per sequence; the caller sums over B.
template <class Real> struct LeakyGradients {
  const Real *d_keys, *d_sums;
  Real *dx, *d_before, *d_decay, *d_scale;
  Real* work;  // (B, T, heads), used on a GPU only
};

/// Writes keys (B, T, d) and norms (B, T, heads), with norms = |sums_t|_h, of sequence `row`:
/// sums_t = decay_h sums_{t-1} + x_t, sums_{-1} = before; keys_t = scale_h sums_t / |sums_t|_h.
template <class Real>
void leaky_keys_forward_cpu(const LeakyInputs<Real>& in, Real* keys, Real* norms, std::int64_t row);
/// Computes the gradients of leaky_keys_forward_cpu(). x is not read.
template <class Real>
void leaky_keys_backward_cpu(const LeakyInputs<Real>& in, const Real* keys, const Real* norms,
    const LeakyGradients<Real>& g, std::int64_t row);

/// Compute all sequences. All pointers are device pointers and `stream` is a cudaStream_t. The
/// kernels use no atomics, so the result bits are reproducible. All return a cudaError_t, 0 if the
/// launches succeed.
int leaky_keys_forward_cuda(const LeakyInputs<float>& in, float* keys, float* norms, void* stream);
int leaky_keys_backward_cuda(const LeakyInputs<float>& in, const float* keys, const float* norms,
    const LeakyGradients<float>& g, void* stream);

/// B sequences of T values, computed from T + 1 steps of x.
template <class Real> struct MixedInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *mix, *scale;  // (heads)
};

/// Gradients. Input: d_values (B, T, d). Outputs: dx (B, T + 1, d), and d_mix, d_scale (B, heads)
/// per sequence.
template <class Real> struct MixedGradients {
  const Real* d_values;
  Real *dx, *d_mix, *d_scale;
};

/// Writes values (B, T, d) and norms (B, T, heads) of sequence `row`: values_t = scale_h n_t /
/// |n_t|_h with n_t = mix_h x_t + (1 - mix_h) x_{t+1}.
template <class Real>
void mixed_values_forward_cpu(
    const MixedInputs<Real>& in, Real* values, Real* norms, std::int64_t row);
template <class Real>
void mixed_values_backward_cpu(const MixedInputs<Real>& in, const Real* values, const Real* norms,
    const MixedGradients<Real>& g, std::int64_t row);

}  // namespace nn
