#pragma once
// Arithmetic on one row of numbers. Files that include this header need the compiler options of
// vector_math.h.

#include <cmath>
#include <limits>

#include "nn/kernels/vector_math.h"

namespace nn::vec {

inline double exp(double x) { return std::exp(x); }

template <class Real> Real dot(const Real* a, const Real* b, std::int64_t n) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// y += x.
template <class Real> void add(const Real* x, std::int64_t n, Real* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// y += factor x.
template <class Real> void add_scaled(Real factor, const Real* x, std::int64_t n, Real* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <class Real> void scale(Real* x, std::int64_t n, Real factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

/// Returns the maximum, or -inf if n is 0.
template <class Real> Real max_of(const Real* x, std::int64_t n) {
  Real max = -std::numeric_limits<Real>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

/// Replaces x by e^(x - max). Returns the sum.
template <class Real> Real exponentiate(Real* x, std::int64_t n, Real max) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = exp(x[i] - max);
    sum += x[i];
  }
  return sum;
}

/// Replaces x by its softmax. Returns the log-sum-exp.
template <class Real> Real softmax(Real* x, std::int64_t n) {
  const Real max = max_of(x, n), sum = exponentiate(x, n, max);
  scale(x, n, 1 / sum);
  return max + std::log(sum);
}

/// Backward of a row of softmax(scale s) v. On entry p is scale s and d is the gradient of the
/// weights. On return p is the weights and d is dL/ds. `log_sum` is the log-sum-exp of the row;
/// `dot` is output . dL/d output.
inline void softmax_backward(
    float* p, float* d, std::int64_t n, float log_sum, float dot, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    p[i] = exp(p[i] - log_sum);
    d[i] = p[i] * (d[i] - dot) * scale;
  }
}

/// Statistics of a row for layer norm.
struct Moments {
  float mean, scale;  // scale: 1 / sqrt(variance + epsilon)
};
inline Moments moments(const float* x, std::int64_t n, float epsilon) {
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

/// y = (x - mean) / sqrt(variance + epsilon) weight + bias. bias may be null. y may be x.
inline void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n,
    float epsilon, float* y) {
  const Moments of = moments(x, n, epsilon);
  const float mean = of.mean, scale = of.scale;
  if (bias != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * weight[i];
  }
}

/// y = x / sqrt(mean of x^2 + epsilon) weight + bias. bias may be null. y may be x.
inline void rms_norm(const float* x, const float* weight, const float* bias, std::int64_t n,
    float epsilon, float* y) {
  const float scale = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
  if (bias != nullptr) add(bias, n, y);
}

/// Rotates the pairs (x_i, x_{i + pairs}) by the angles with the given cosines and sines; `way` -1:
/// back, as the gradient.
inline void turn(const float* cos, const float* sin, std::int64_t pairs, float* x, float way = 1) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float a = x[i], b = x[i + pairs], s = way * sin[i];
    x[i] = a * cos[i] - b * s;
    x[i + pairs] = b * cos[i] + a * s;
  }
}

/// Adds the gradients to dx, d_weight and, if not null, d_bias. d is dL/dy.
inline void rms_norm_backward(const float* x, const float* d, const float* weight, std::int64_t n,
    float epsilon, float* dx, float* d_weight, float* d_bias) {
  const float scale = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + epsilon);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += d[i] * weight[i] * x[i];
  const float along = sum * scale * scale / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] += scale * (d[i] * weight[i] - x[i] * along);
    d_weight[i] += d[i] * x[i] * scale;
  }
  if (d_bias != nullptr) add(d, n, d_bias);
}

/// Does the same for layer_norm().
inline void layer_norm_backward(const float* x, const float* d, const float* weight, std::int64_t n,
    float epsilon, float* dx, float* d_weight, float* d_bias) {
  const Moments of = moments(x, n, epsilon);
  const float mean = of.mean, scale = of.scale;
  float first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = (x[i] - mean) * scale, g = d[i] * weight[i];
    first += g;
    second += g * hat;
  }
  first /= static_cast<float>(n), second /= static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float hat = (x[i] - mean) * scale;
    dx[i] += scale * (d[i] * weight[i] - first - hat * second);
    d_weight[i] += d[i] * hat;
  }
  if (d_bias != nullptr) add(d, n, d_bias);
}

}  // namespace nn::vec
