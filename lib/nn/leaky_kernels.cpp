#include "nn/leaky_kernels.h"

#include <cmath>
#include <vector>

namespace nn {
namespace {

template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t n) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

template <class Real>
void leaky_keys_forward(const LeakyShape& shape, const Real* x, const Real* decay,
                        const Real* scale, const Real* before, Real* keys, Real* norms) {
  const std::int64_t d = shape.heads * shape.width, w = shape.width;
  std::vector<Real> sums(static_cast<std::size_t>(d), Real(0));
  if (before != nullptr) sums.assign(before, before + d);
  for (std::int64_t t = 0; t < shape.steps; ++t) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      Real* const sum = sums.data() + h * w;
      const Real* const in = x + t * shape.x_stride + h * w;
      Real* const key = keys + t * d + h * w;
      const Real keep = decay[h];
      Real square = Real(kNormFloor);
#pragma omp simd reduction(+ : square)
      for (std::int64_t c = 0; c < w; ++c) {
        sum[c] = keep * sum[c] + in[c];
        square += sum[c] * sum[c];
      }
      const Real norm = std::sqrt(square), factor = scale[h] / norm;
      norms[t * shape.heads + h] = norm;
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) key[c] = factor * sum[c];
    }
  }
}

template <class Real>
void leaky_keys_backward(const LeakyShape& shape, const Real* keys, const Real* norms,
                         const Real* decay, const Real* scale, const Real* before,
                         const Real* d_keys, const Real* d_sums, Real* dx, Real* d_before,
                         Real* d_decay, Real* d_scale) {
  // sums_t = keys_t norm_t / scale; d_sum below is dL/d sums_t, which is dL/d x_t too.
  const std::int64_t d = shape.heads * shape.width, w = shape.width;
  std::vector<Real> carried(static_cast<std::size_t>(d), Real(0));
  for (std::int64_t t = shape.steps - 1; t >= 0; --t) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const std::int64_t at = t * d + h * w;
      Real* const d_sum = carried.data() + h * w;
      Real* const out = dx + t * shape.x_stride + h * w;
      const Real keep = decay[h], inverse_scale = 1 / scale[h];
      if (d_sums != nullptr) {
#pragma omp simd
        for (std::int64_t c = 0; c < w; ++c) d_sum[c] += d_sums[at + c];
      }
      if (d_keys != nullptr) {
        const Real along = dot(keys + at, d_keys + at, w);
        const Real factor = scale[h] / norms[t * shape.heads + h];
        const Real back = along * inverse_scale * inverse_scale;
        d_scale[h] += along * inverse_scale;
#pragma omp simd
        for (std::int64_t c = 0; c < w; ++c)
          d_sum[c] += factor * (d_keys[at + c] - back * keys[at + c]);
      }
      if (t > 0) {
        const Real to_sums = norms[(t - 1) * shape.heads + h] * inverse_scale;
        d_decay[h] += to_sums * dot(d_sum, keys + at - d, w);
      } else if (before != nullptr) {
        d_decay[h] += dot(d_sum, before + h * w, w);
      }
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) {
        out[c] = d_sum[c];
        d_sum[c] *= keep;
      }
    }
  }
  if (d_before != nullptr)
    for (std::int64_t c = 0; c < d; ++c) d_before[c] = carried[static_cast<std::size_t>(c)];
}

template <class Real>
void mixed_values_forward(const LeakyShape& shape, const Real* x, const Real* mix,
                          const Real* scale, Real* values, Real* norms) {
  const std::int64_t d = shape.heads * shape.width, w = shape.width;
  for (std::int64_t t = 0; t < shape.steps; ++t) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const Real* const now = x + t * shape.x_stride + h * w;
      const Real* const next = now + shape.x_stride;
      Real* const value = values + t * d + h * w;
      const Real a = mix[h], b = 1 - a;
      Real square = Real(kNormFloor);
#pragma omp simd reduction(+ : square)
      for (std::int64_t c = 0; c < w; ++c) {
        value[c] = a * now[c] + b * next[c];
        square += value[c] * value[c];
      }
      const Real norm = std::sqrt(square), factor = scale[h] / norm;
      norms[t * shape.heads + h] = norm;
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) value[c] *= factor;
    }
  }
}

template <class Real>
void mixed_values_backward(const LeakyShape& shape, const Real* x, const Real* values,
                           const Real* norms, const Real* mix, const Real* scale,
                           const Real* d_values, Real* dx, Real* d_mix, Real* d_scale) {
  const std::int64_t d = shape.heads * shape.width, w = shape.width;
  for (std::int64_t c = 0; c < d; ++c) dx[c] = 0;
  for (std::int64_t t = 0; t < shape.steps; ++t) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const std::int64_t at = t * d + h * w, in = t * shape.x_stride + h * w;
      const Real* const now = x + in;
      const Real* const next = now + shape.x_stride;
      Real* const d_now = dx + in;
      Real* const d_next = d_now + shape.x_stride;
      const Real along = dot(values + at, d_values + at, w), inverse_scale = 1 / scale[h];
      const Real factor = scale[h] / norms[t * shape.heads + h];
      const Real back = along * inverse_scale * inverse_scale;
      const Real a = mix[h], b = 1 - a;
      d_scale[h] += along * inverse_scale;
      Real difference = 0;
#pragma omp simd reduction(+ : difference)
      for (std::int64_t c = 0; c < w; ++c) {
        const Real d_mixed = factor * (d_values[at + c] - back * values[at + c]);
        difference += d_mixed * (now[c] - next[c]);
        d_now[c] += a * d_mixed;
        d_next[c] = b * d_mixed;
      }
      d_mix[h] += difference;
    }
  }
}

#define NN_LEAKY_FOR(Real)                                                                         \
  template void leaky_keys_forward<Real>(const LeakyShape&, const Real*, const Real*, const Real*, \
                                         const Real*, Real*, Real*);                               \
  template void leaky_keys_backward<Real>(const LeakyShape&, const Real*, const Real*,             \
                                          const Real*, const Real*, const Real*, const Real*,      \
                                          const Real*, Real*, Real*, Real*, Real*);                \
  template void mixed_values_forward<Real>(const LeakyShape&, const Real*, const Real*,            \
                                           const Real*, Real*, Real*);                             \
  template void mixed_values_backward<Real>(const LeakyShape&, const Real*, const Real*,           \
                                            const Real*, const Real*, const Real*, const Real*,    \
                                            Real*, Real*, Real*);
NN_LEAKY_FOR(float)
NN_LEAKY_FOR(double)
#undef NN_LEAKY_FOR

}  // namespace nn
