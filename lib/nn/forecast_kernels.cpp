#include "nn/forecast_kernels.h"

#include <algorithm>
#include <limits>

#include "nn/vector_math.h"

namespace nn {
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

ForecastUnit::ForecastUnit(const ForecastShape& shape, std::int64_t capacity)
    : shape_(shape),
      capacity_(capacity),
      channels_(shape.width() / shape.heads),
      keys_(static_cast<std::size_t>(shape.width() * capacity)),
      values_(keys_.size()),
      scores_(static_cast<std::size_t>(capacity)),
      d_scores_(scores_.size()),
      read_(keys_.size()) {}

void ForecastUnit::set_key(std::int64_t step, const float* x, const float* weights) {
  float k[64];
  apply(weights, x, shape_.points, k);
  for (std::int64_t c = 0; c < shape_.width(); ++c) channel(keys_, c)[step] = k[c];
}

void ForecastUnit::set_value(std::int64_t step, const float* next_x, const float* weights) {
  float v[64];
  apply(weights + 2 * shape_.points * shape_.points, next_x, shape_.points, v);
  for (std::int64_t c = 0; c < shape_.width(); ++c) channel(values_, c)[step] = v[c];
}

void ForecastUnit::weigh(std::int64_t step, std::int64_t head) {
  float* const p = scores_.data();
  std::fill(p, p + step, 0.0f);
  for (std::int64_t c = head * channels_; c < (head + 1) * channels_; ++c) {
    const float* const k = channel(keys_, c);
    const float q = shape_.beta * k[step];
#pragma omp simd
    for (std::int64_t s = 0; s < step; ++s) p[s] += q * k[s];
  }
  float max = -std::numeric_limits<float>::infinity(), sum = 0;
#pragma omp simd reduction(max : max)
  for (std::int64_t s = 0; s < step; ++s) max = p[s] > max ? p[s] : max;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t s = 0; s < step; ++s) {
    p[s] = vec::exp(p[s] - max);
    sum += p[s];
  }
  const float inverse = 1 / sum;
#pragma omp simd
  for (std::int64_t s = 0; s < step; ++s) p[s] *= inverse;
}

void ForecastUnit::forecast(std::int64_t step, const float* weights, float* y) {
  float* const o = read_.data() + step * shape_.width();
  std::fill(o, o + shape_.width(), 0.0f);
  for (std::int64_t head = 0; step > 0 && head < shape_.heads; ++head) {
    weigh(step, head);
    for (std::int64_t c = head * channels_; c < (head + 1) * channels_; ++c) {
      const float *const v = channel(values_, c), *const p = scores_.data();
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t s = 0; s < step; ++s) sum += p[s] * v[s];
      o[c] = sum;
    }
  }
  apply(weights + 4 * shape_.points * shape_.points, o, shape_.points, y);
}

void ForecastUnit::forward(const float* x, std::int64_t steps, const float* weights, float* y) {
  const std::int64_t width = shape_.width();
  for (std::int64_t t = 0; t < steps; ++t) {
    set_key(t, x + t * width, weights);
    if (t > 0) set_value(t - 1, x + t * width, weights);
    forecast(t, weights, y + t * width);
  }
}

void ForecastUnit::backward(const float* x, std::int64_t steps, const float* weights,
                            const float* dy, float* d_weights) {
  const std::int64_t width = shape_.width(), n = shape_.points, matrix = 2 * n * n;
  d_keys_.assign(keys_.size(), 0.0f);
  d_values_.assign(values_.size(), 0.0f);
  for (std::int64_t t = 1; t < steps; ++t) {
    const float* const o = read_.data() + t * width;
    float d_o[64];
    apply_back(weights + 2 * matrix, dy + t * width, n, d_o);
    add_gradient(dy + t * width, o, n, d_weights + 2 * matrix);
    for (std::int64_t head = 0; head < shape_.heads; ++head) {
      weigh(t, head);
      const std::int64_t begin = head * channels_, end = begin + channels_;
      float *const p = scores_.data(), *const d = d_scores_.data();
      float dot = 0;
      for (std::int64_t c = begin; c < end; ++c) dot += d_o[c] * o[c];
      std::fill(d, d + t, -dot);
      for (std::int64_t c = begin; c < end; ++c) {
        const float* const v = channel(values_, c);
        float* const dv = channel(d_values_, c);
        const float g = d_o[c];
#pragma omp simd
        for (std::int64_t s = 0; s < t; ++s) {
          d[s] += g * v[s];
          dv[s] += g * p[s];
        }
      }
#pragma omp simd
      for (std::int64_t s = 0; s < t; ++s) d[s] *= p[s] * shape_.beta;
      for (std::int64_t c = begin; c < end; ++c) {
        const float* const k = channel(keys_, c);
        float* const dk = channel(d_keys_, c);
        const float q = k[t];
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t s = 0; s < t; ++s) {
          sum += d[s] * k[s];
          dk[s] += q * d[s];
        }
        dk[t] += sum;
      }
    }
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    float d_key[64], d_value[64];
    for (std::int64_t c = 0; c < width; ++c) {
      d_key[c] = channel(d_keys_, c)[t];
      d_value[c] = channel(d_values_, c)[t];
    }
    add_gradient(d_key, x + t * width, n, d_weights);
    if (t + 1 < steps) add_gradient(d_value, x + (t + 1) * width, n, d_weights + matrix);
  }
}

}  // namespace nn
