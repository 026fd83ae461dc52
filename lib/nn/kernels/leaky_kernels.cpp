#include "nn/kernels/leaky_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/row_math.h"

namespace nn {

template <class Real>
void leaky_keys_forward_cpu(
    const LeakyInputs<Real>& in, Real* keys, Real* norms, std::int64_t row) {
  const std::int64_t d = in.heads * in.width, w = in.width;
  std::vector<Real> sums(static_cast<std::size_t>(d), Real(0));
  if (in.before != nullptr) sums.assign(in.before + row * d, in.before + (row + 1) * d);
  for (std::int64_t t = 0; t < in.steps; ++t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h;
      Real* const sum = sums.data() + h * w;  // (width), like x and key
      const Real* const x = in.x + row * in.x_row + t * in.x_step + h * w;
      Real* const key = keys + head * w;
      const Real keep = in.decay[h];
      Real square = Real(kNormFloor);
#pragma omp simd reduction(+ : square)
      for (std::int64_t c = 0; c < w; ++c) {
        sum[c] = keep * sum[c] + x[c];
        square += sum[c] * sum[c];
      }
      const Real norm = std::sqrt(square), factor = in.scale[h] / norm;
      norms[head] = norm;
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) key[c] = factor * sum[c];
    }
  }
}

template <class Real>
void leaky_keys_backward_cpu(const LeakyInputs<Real>& in, const Real* keys, const Real* norms,
    const LeakyGradients<Real>& g, std::int64_t row) {
  // sums_t = keys_t norm_t / scale. d_sum below is dL/d sums_t, which equals dL/d x_t.
  const std::int64_t d = in.heads * in.width, w = in.width;
  const Real* const before = in.before == nullptr ? nullptr : in.before + row * d;
  Real *const d_decay = g.d_decay + row * in.heads, *const d_scale = g.d_scale + row * in.heads;
  std::fill(d_decay, d_decay + in.heads, Real(0));
  std::fill(d_scale, d_scale + in.heads, Real(0));
  std::vector<Real> carried(static_cast<std::size_t>(d), Real(0));
  for (std::int64_t t = in.steps - 1; t >= 0; --t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h, at = head * w;
      Real* const d_sum = carried.data() + h * w;  // (width), like the pointers below
      Real* const out = g.dx + at;
      const Real keep = in.decay[h], inverse_scale = 1 / in.scale[h];
      if (g.d_sums != nullptr) vec::add(g.d_sums + at, w, d_sum);
      if (g.d_keys != nullptr) {
        const Real along = vec::dot(keys + at, g.d_keys + at, w);
        const Real factor = in.scale[h] / norms[head];
        const Real back = along * inverse_scale * inverse_scale;
        d_scale[h] += along * inverse_scale;
#pragma omp simd
        for (std::int64_t c = 0; c < w; ++c)
          d_sum[c] += factor * (g.d_keys[at + c] - back * keys[at + c]);
      }
      if (t > 0) {
        const Real to_sums = norms[head - in.heads] * inverse_scale;
        d_decay[h] += to_sums * vec::dot(d_sum, keys + at - d, w);
      } else if (before != nullptr) {
        d_decay[h] += vec::dot(d_sum, before + h * w, w);
      }
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) {
        out[c] = d_sum[c];
        d_sum[c] *= keep;
      }
    }
  }
  if (g.d_before != nullptr) std::copy(carried.begin(), carried.end(), g.d_before + row * d);
}

template <class Real>
void mixed_values_forward_cpu(
    const MixedInputs<Real>& in, Real* values, Real* norms, std::int64_t row) {
  const std::int64_t w = in.width;
  for (std::int64_t t = 0; t < in.steps; ++t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h;
      const Real* const now = in.x + row * in.x_row + t * in.x_step + h * w;
      const Real* const next = now + in.x_step;
      Real* const value = values + head * w;
      const Real a = in.mix[h], b = 1 - a;
      Real square = Real(kNormFloor);
#pragma omp simd reduction(+ : square)
      for (std::int64_t c = 0; c < w; ++c) {
        value[c] = a * now[c] + b * next[c];
        square += value[c] * value[c];
      }
      const Real norm = std::sqrt(square), factor = in.scale[h] / norm;
      norms[head] = norm;
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) value[c] *= factor;
    }
  }
}

template <class Real>
void mixed_values_backward_cpu(const MixedInputs<Real>& in, const Real* values, const Real* norms,
    const MixedGradients<Real>& g, std::int64_t row) {
  const std::int64_t d = in.heads * in.width, w = in.width;
  Real* const dx = g.dx + row * (in.steps + 1) * d;
  Real *const d_mix = g.d_mix + row * in.heads, *const d_scale = g.d_scale + row * in.heads;
  std::fill(d_mix, d_mix + in.heads, Real(0));
  std::fill(d_scale, d_scale + in.heads, Real(0));
  std::fill(dx, dx + d, Real(0));
  for (std::int64_t t = 0; t < in.steps; ++t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h, at = head * w;
      const Real* const now = in.x + row * in.x_row + t * in.x_step + h * w;
      const Real* const next = now + in.x_step;
      Real *const d_now = dx + t * d + h * w, *const d_next = d_now + d;
      const Real along = vec::dot(values + at, g.d_values + at, w), inverse_scale = 1 / in.scale[h];
      const Real factor = in.scale[h] / norms[head];
      const Real back = along * inverse_scale * inverse_scale;
      const Real a = in.mix[h], b = 1 - a;
      d_scale[h] += along * inverse_scale;
      Real difference = 0;
#pragma omp simd reduction(+ : difference)
      for (std::int64_t c = 0; c < w; ++c) {
        const Real d_mixed = factor * (g.d_values[at + c] - back * values[at + c]);
        difference += d_mixed * (now[c] - next[c]);
        d_now[c] += a * d_mixed;
        d_next[c] = b * d_mixed;
      }
      d_mix[h] += difference;
    }
  }
}

#define NN_LEAKY_FOR(Real)                                                                      \
  template void leaky_keys_forward_cpu(const LeakyInputs<Real>&, Real*, Real*, std::int64_t);   \
  template void leaky_keys_backward_cpu(const LeakyInputs<Real>&, const Real*, const Real*,     \
      const LeakyGradients<Real>&, std::int64_t);                                               \
  template void mixed_values_forward_cpu(const MixedInputs<Real>&, Real*, Real*, std::int64_t); \
  template void mixed_values_backward_cpu(const MixedInputs<Real>&, const Real*, const Real*,   \
      const MixedGradients<Real>&, std::int64_t);
NN_LEAKY_FOR(float)
NN_LEAKY_FOR(double)
#undef NN_LEAKY_FOR

}  // namespace nn
