#include "forecast/forecast_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace forecast {
namespace {

/// y = W x, complex (n, n).
void apply(const float* w, const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    float re = 0, im = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const float a = w[2 * (i * n + j)], b = w[2 * (i * n + j) + 1];
      re += a * x[2 * j] - b * x[2 * j + 1];
      im += a * x[2 * j + 1] + b * x[2 * j];
    }
    y[2 * i] = re, y[2 * i + 1] = im;
  }
}

/// dx = W^H dy.
void apply_back(const float* w, const float* dy, std::int64_t n, float* dx) {
  for (std::int64_t j = 0; j < n; ++j) {
    float re = 0, im = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float a = w[2 * (i * n + j)], b = w[2 * (i * n + j) + 1];
      re += a * dy[2 * i] + b * dy[2 * i + 1];
      im += a * dy[2 * i + 1] - b * dy[2 * i];
    }
    dx[2 * j] = re, dx[2 * j + 1] = im;
  }
}

void add_gradient(const float* dy, const float* x, std::int64_t n, float* dw) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      dw[2 * (i * n + j)] += dy[2 * i] * x[2 * j] + dy[2 * i + 1] * x[2 * j + 1];
      dw[2 * (i * n + j) + 1] += dy[2 * i + 1] * x[2 * j] - dy[2 * i] * x[2 * j + 1];
    }
  }
}

}  // namespace

MemoryUnit::MemoryUnit(const Shape& shape, std::int64_t capacity)
    : shape_(shape), capacity_(capacity), channels_(shape.width() / shape.heads),
      keys_(static_cast<std::size_t>(shape.width() * capacity)), values_(keys_.size()),
      scores_(static_cast<std::size_t>(capacity)), d_scores_(scores_.size()),
      log_sums_(static_cast<std::size_t>(capacity * shape.heads)), read_(keys_.size()) {}

void MemoryUnit::set_key(std::int64_t step, const float* x, const float* weights) {
  float k[2 * kMostPoints];
  apply(weights, x, shape_.points, k);
  for (std::int64_t c = 0; c < shape_.width(); ++c) channel(keys_, c)[step] = k[c];
}

void MemoryUnit::set_value(std::int64_t step, const float* next_x, const float* weights) {
  float v[2 * kMostPoints];
  apply(weights + 2 * shape_.points * shape_.points, next_x, shape_.points, v);
  for (std::int64_t c = 0; c < shape_.width(); ++c) channel(values_, c)[step] = v[c];
}

// The loops over earlier steps process one point (two channels) at a time and fuse operations.
// Profiles show that instructions bound them, not memory: a head's channels stay in the first-level
// cache.

void MemoryUnit::score(std::int64_t step, std::int64_t head) {
  float* const p = scores_.data();
  const std::int64_t begin = head * channels_;
  for (std::int64_t c = begin; c < begin + channels_; c += 2) {
    const float *const k0 = channel(keys_, c), *const k1 = channel(keys_, c + 1);
    const float q0 = shape_.beta * k0[step], q1 = shape_.beta * k1[step];
    if (c == begin) {
#pragma omp simd
      for (std::int64_t s = 0; s < step; ++s) p[s] = q0 * k0[s] + q1 * k1[s];
    } else {
#pragma omp simd
      for (std::int64_t s = 0; s < step; ++s) p[s] += q0 * k0[s] + q1 * k1[s];
    }
  }
}

void MemoryUnit::read(std::int64_t step, std::int64_t head, float* o) {
  score(step, head);
  float* const p = scores_.data();
  const float max = nn::vec::max_of(p, step), sum = nn::vec::exponentiate(p, step, max);
  log_sums_[static_cast<std::size_t>(step * shape_.heads + head)] = max + std::log(sum);
  const float inverse = 1 / sum;
  for (std::int64_t c = head * channels_; c < (head + 1) * channels_; c += 2) {
    const float *const v0 = channel(values_, c), *const v1 = channel(values_, c + 1);
    float sum0 = 0, sum1 = 0;
#pragma omp simd reduction(+ : sum0, sum1)
    for (std::int64_t s = 0; s < step; ++s) {
      sum0 += p[s] * v0[s];
      sum1 += p[s] * v1[s];
    }
    o[c] = inverse * sum0, o[c + 1] = inverse * sum1;
  }
}

void MemoryUnit::forecast(std::int64_t step, const float* weights, float* y) {
  float* const o = read_.data() + step * shape_.width();
  std::fill(o, o + shape_.width(), 0.0f);
  for (std::int64_t head = 0; step > 0 && head < shape_.heads; ++head) read(step, head, o);
  apply(weights + 4 * shape_.points * shape_.points, o, shape_.points, y);
}

void MemoryUnit::forward(const float* x, std::int64_t steps, const float* weights, float* y) {
  const std::int64_t width = shape_.width();
  for (std::int64_t t = 0; t < steps; ++t) {
    set_key(t, x + t * width, weights);
    if (t > 0) set_value(t - 1, x + t * width, weights);
    forecast(t, weights, y + t * width);
  }
}

void MemoryUnit::read_back(std::int64_t step, std::int64_t head, const float* o, const float* d_o) {
  score(step, head);
  float *const p = scores_.data(), *const d = d_scores_.data();
  const std::int64_t begin = head * channels_, end = begin + channels_;
  const float log_sum = log_sums_[static_cast<std::size_t>(step * shape_.heads + head)];
  float dot = 0;
  for (std::int64_t c = begin; c < end; ++c) dot += d_o[c] * o[c];
#pragma omp simd
  for (std::int64_t s = 0; s < step; ++s) {
    p[s] = nn::vec::exp(p[s] - log_sum);
    d[s] = -dot;
  }
  for (std::int64_t c = begin; c < end; c += 2) {
    const float *const v0 = channel(values_, c), *const v1 = channel(values_, c + 1);
    float *const dv0 = channel(d_values_, c), *const dv1 = channel(d_values_, c + 1);
    const float g0 = d_o[c], g1 = d_o[c + 1];
#pragma omp simd
    for (std::int64_t s = 0; s < step; ++s) {
      d[s] += g0 * v0[s] + g1 * v1[s];
      dv0[s] += g0 * p[s];
      dv1[s] += g1 * p[s];
    }
  }
#pragma omp simd
  for (std::int64_t s = 0; s < step; ++s) d[s] *= p[s] * shape_.beta;
  for (std::int64_t c = begin; c < end; c += 2) {
    const float *const k0 = channel(keys_, c), *const k1 = channel(keys_, c + 1);
    float *const dk0 = channel(d_keys_, c), *const dk1 = channel(d_keys_, c + 1);
    const float q0 = k0[step], q1 = k1[step];
    float sum0 = 0, sum1 = 0;
#pragma omp simd reduction(+ : sum0, sum1)
    for (std::int64_t s = 0; s < step; ++s) {
      sum0 += d[s] * k0[s];
      sum1 += d[s] * k1[s];
      dk0[s] += q0 * d[s];
      dk1[s] += q1 * d[s];
    }
    dk0[step] += sum0, dk1[step] += sum1;
  }
}

void MemoryUnit::backward(
    const float* x, std::int64_t steps, const float* weights, const float* dy, float* d_weights) {
  const std::int64_t width = shape_.width(), n = shape_.points, matrix = 2 * n * n;
  d_keys_.assign(keys_.size(), 0.0f);
  d_values_.assign(values_.size(), 0.0f);
  for (std::int64_t t = 1; t < steps; ++t) {
    const float* const o = read_.data() + t * width;
    float d_o[2 * kMostPoints];
    apply_back(weights + 2 * matrix, dy + t * width, n, d_o);
    add_gradient(dy + t * width, o, n, d_weights + 2 * matrix);
    for (std::int64_t head = 0; head < shape_.heads; ++head) read_back(t, head, o, d_o);
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    float d_key[2 * kMostPoints], d_value[2 * kMostPoints];
    for (std::int64_t c = 0; c < width; ++c) {
      d_key[c] = channel(d_keys_, c)[t];
      d_value[c] = channel(d_values_, c)[t];
    }
    add_gradient(d_key, x + t * width, n, d_weights);
    if (t + 1 < steps) add_gradient(d_value, x + (t + 1) * width, n, d_weights + matrix);
  }
}

}  // namespace forecast
