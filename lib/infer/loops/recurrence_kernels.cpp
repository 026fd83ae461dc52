#include "infer/loops/recurrence_kernels.h"

#include <algorithm>

#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/row_math.h"

namespace infer {
namespace {

// A sigmoid that loops can vectorise.
inline float logistic(float x) { return 1.0f / (1.0f + nn::vec::exp(-x)); }

float factor_to_length(const float* x, std::int64_t n, float length) {
  const float squares = nn::vec::dot(x, x, n) + static_cast<float>(nn::kNormFloor);
  return length / std::sqrt(squares);
}

}  // namespace

float sigmoid(float x) { return logistic(x); }

void leaky_key(const float* x, std::int64_t n, float decay, float scale, float* sums, float* key) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) sums[i] = decay * sums[i] + x[i];
  const float factor = factor_to_length(sums, n, scale);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) key[i] = factor * sums[i];
}

void gated_key(const float* x, std::int64_t n, float gate, float decay, float* level, float* sums,
    float* key) {
  const float faded = *level + decay;
  *level = std::max(faded, gate);
  const float own = std::exp(gate - *level), kept = std::exp(faded - *level);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) sums[i] = kept * sums[i] + own * x[i];
  const float factor = factor_to_length(sums, n, 1);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) key[i] = factor * sums[i];
}

void mixed_value(
    const float* before, const float* after, std::int64_t n, float mix, float scale, float* value) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) value[i] = mix * before[i] + (1 - mix) * after[i];
  const float factor = factor_to_length(value, n, scale);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) value[i] *= factor;
}

void gla_decays(float* x, std::int64_t n) {
  constexpr float kSmall = -80;  // below it logistic(x) is e^x, which float32 would lose
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float root = std::sqrt(std::sqrt(std::sqrt(std::sqrt(logistic(x[i])))));
    x[i] = x[i] < kSmall ? nn::vec::exp(x[i] / 16) : root;
  }
}

void gla_step(const float* q, const float* k, const float* decay, const float* v,
    std::int64_t d_key, std::int64_t d_value, float scale, float* state, float* o) {
  for (std::int64_t j = 0; j < d_value; ++j) o[j] = 0;
  for (std::int64_t i = 0; i < d_key; ++i) {
    float* const row = state + i * d_value;
    const float keep = decay[i], in = k[i], out = q[i] * scale;
#pragma omp simd
    for (std::int64_t j = 0; j < d_value; ++j) {
      row[j] = keep * row[j] + in * v[j];
      o[j] += out * row[j];
    }
  }
}

void short_convolution(const float* x, const float* weight, std::int64_t taps, std::int64_t stride,
    std::int64_t n, float* past, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = weight[(taps - 1) * stride + i] * x[i];
  for (std::int64_t j = 0; j + 1 < taps; ++j) {
    const float *const input = past + j * stride, *const by = weight + j * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] += by[i] * input[i];
  }
  for (std::int64_t j = 0; j + 1 < taps; ++j) {
    const float* const next = j + 2 < taps ? past + (j + 1) * stride : x;
    for (std::int64_t i = 0; i < n; ++i) past[j * stride + i] = next[i];
  }
}

void to_length_one(float* x, std::int64_t n, float epsilon) {
  scale(1 / std::sqrt(nn::vec::dot(x, x, n) + epsilon), n, x);
}

float delta_decay(float x, float log_rate) {
  const float softplus = x > 20 ? x : std::log1p(std::exp(x));
  return std::exp(-std::exp(log_rate) * softplus);
}

void delta_step(const float* q, const float* k, float beta, float decay, const float* v,
    std::int64_t d_key, std::int64_t d_value, float* state, float* error, float* o) {
  for (std::int64_t j = 0; j < d_value; ++j) error[j] = v[j], o[j] = 0;
  for (std::int64_t i = 0; i < d_key; ++i) {
    float* const row = state + i * d_value;
    const float key = k[i];
#pragma omp simd
    for (std::int64_t j = 0; j < d_value; ++j) {
      row[j] *= decay;
      error[j] -= key * row[j];
    }
  }
  for (std::int64_t i = 0; i < d_key; ++i) {
    float* const row = state + i * d_value;
    const float step = beta * k[i], out = q[i];
#pragma omp simd
    for (std::int64_t j = 0; j < d_value; ++j) {
      row[j] += step * error[j];
      o[j] += out * row[j];
    }
  }
}

void lstm_step(const float* of_input, const float* of_last, std::int64_t width, std::int64_t begin,
    std::int64_t end, float* c, float* h) {
#pragma omp simd
  for (std::int64_t j = begin; j < end; ++j) {
    const auto gate = [&](std::int64_t which) {
      return of_input[which * width + j] + of_last[which * width + j];
    };
    const float in = logistic(gate(0)), forget = logistic(gate(1)), out = logistic(gate(3));
    c[j] = forget * c[j] + in * nn::vec::tanh(gate(2));
    h[j] = out * nn::vec::tanh(c[j]);
  }
}

void sru_step(const float* gates, const float* x, const SruCell& cell, std::int64_t d,
    std::int64_t begin, std::int64_t end, float* c, float* h) {
#pragma omp simd
  for (std::int64_t j = begin; j < end; ++j) {
    const float before = c[j];
    const float forget = logistic(gates[d + j] + cell.forget[j] * before + cell.forget_bias[j]);
    const float highway =
        logistic(gates[2 * d + j] + cell.highway[j] * before + cell.highway_bias[j]);
    c[j] = forget * before + (1 - forget) * gates[j];
    h[j] = x[j] + highway * (c[j] - x[j]);
  }
}

void add_scaled(const float* x, const float* z, float factor, std::int64_t n, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] + factor * z[i];
}

void scale(float factor, std::int64_t n, float* y) { nn::vec::scale(y, n, factor); }

}  // namespace infer
