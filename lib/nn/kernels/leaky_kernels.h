#pragma once
// Loops over time of Memory Mosaics' keys and values: on the CPU sequence by sequence, vectorised
// over channels; on a GPU a block a head of a sequence. See leaky.h for the formulas.

#include <cstdint>

namespace nn {

/// Added to squared lengths, so that the norm of a zero vector is not zero.
inline constexpr double kNormFloor = 1e-12;

/// B sequences of T steps of d = heads * width channels. Channels of x are contiguous, its steps
/// x_step apart and its sequences x_row; everything else is contiguous.
template <class Real>
struct LeakyInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *decay, *scale;  // (heads)
  const Real* before;         // (B, d), or null: 0
};

/// d_keys, d_sums (B, T, d), of which one may be null. The others are written: dx (B, T, d),
/// d_before (B, d), null where before is; d_decay, d_scale (B, heads), a sequence's part: the
/// caller adds up.
template <class Real>
struct LeakyGradients {
  const Real *d_keys, *d_sums;
  Real *dx, *d_before, *d_decay, *d_scale;
  Real* work;  // (B, T, heads), on a GPU only
};

/// sums_t = decay_h sums_{t-1} + x_t, with sums_{-1} = before; keys_t = scale_h sums_t /
/// |sums_t|_h. Writes keys (B, T, d) and norms (B, T, heads): |sums_t|_h. Sequences [begin, end).
template <class Real>
void leaky_keys_forward_cpu(const LeakyInputs<Real>& in, Real* keys, Real* norms,
                            std::int64_t begin, std::int64_t end);
/// Gradients of the above; x is not looked at.
template <class Real>
void leaky_keys_backward_cpu(const LeakyInputs<Real>& in, const Real* keys, const Real* norms,
                             const LeakyGradients<Real>& g, std::int64_t begin, std::int64_t end);

/// All sequences, pointers being the device's. No atomics: the same bits each time. `stream` is a
/// cudaStream_t. Return a cudaError_t, 0 if the launches went well.
int leaky_keys_forward_cuda(const LeakyInputs<float>& in, float* keys, float* norms, void* stream);
int leaky_keys_backward_cuda(const LeakyInputs<float>& in, const float* keys, const float* norms,
                             const LeakyGradients<float>& g, void* stream);

/// B sequences of T values between T + 1 steps of x.
template <class Real>
struct MixedInputs {
  std::int64_t rows, steps, heads, width;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real *mix, *scale;  // (heads)
};

/// d_values (B, T, d); written: dx (B, T + 1, d), d_mix and d_scale (B, heads), a sequence's part.
template <class Real>
struct MixedGradients {
  const Real* d_values;
  Real *dx, *d_mix, *d_scale;
};

/// values_t = scale_h n_t / |n_t|_h with n_t = mix_h x_t + (1 - mix_h) x_{t+1}. Writes values (B,
/// T, d) and norms (B, T, heads). Sequences [begin, end).
template <class Real>
void mixed_values_forward_cpu(const MixedInputs<Real>& in, Real* values, Real* norms,
                              std::int64_t begin, std::int64_t end);
template <class Real>
void mixed_values_backward_cpu(const MixedInputs<Real>& in, const Real* values, const Real* norms,
                               const MixedGradients<Real>& g, std::int64_t begin, std::int64_t end);

}  // namespace nn
