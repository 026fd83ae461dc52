#pragma once
// Loops over time of Memory Mosaics' keys and values, vectorised over channels, for one sequence.

#include <cstdint>

namespace nn {

/// Channels of a sequence: `steps` rows of heads x width contiguous floats, or doubles. Rows of x
/// and of its gradient stand `x_stride` apart, all others heads * width.
struct LeakyShape {
  std::int64_t steps, heads, width, x_stride;
};

/// Added to squared lengths, so that the norm of a zero vector is not zero.
inline constexpr double kNormFloor = 1e-12;

/// sums_t = decay_h sums_{t-1} + x_t, with sums_{-1} = before (null: 0); keys_t = scale_h sums_t /
/// |sums_t|_h. norms (steps, heads): |sums_t|_h. decay, scale (heads).
template <class Real>
void leaky_keys_forward(const LeakyShape& shape, const Real* x, const Real* decay,
                        const Real* scale, const Real* before, Real* keys, Real* norms);

/// Gradients of the above. d_keys, d_sums may be null (one of them at least is not). Overwrites dx
/// and d_before (null where before is); adds to d_decay and d_scale.
template <class Real>
void leaky_keys_backward(const LeakyShape& shape, const Real* keys, const Real* norms,
                         const Real* decay, const Real* scale, const Real* before,
                         const Real* d_keys, const Real* d_sums, Real* dx, Real* d_before,
                         Real* d_decay, Real* d_scale);

/// x has steps + 1 rows: values_t = scale_h n_t / |n_t|_h with n_t = mix_h x_t + (1 - mix_h)
/// x_{t+1}. norms (steps, heads).
template <class Real>
void mixed_values_forward(const LeakyShape& shape, const Real* x, const Real* mix,
                          const Real* scale, Real* values, Real* norms);

/// Overwrites dx (steps + 1 rows); adds to d_mix and d_scale.
template <class Real>
void mixed_values_backward(const LeakyShape& shape, const Real* x, const Real* values,
                           const Real* norms, const Real* mix, const Real* scale,
                           const Real* d_values, Real* dx, Real* d_mix, Real* d_scale);

}  // namespace nn
