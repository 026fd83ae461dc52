#include "infer/loops/recurrence_kernels.h"

#include <cmath>

#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/row_math.h"

namespace infer {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + nn::vec::exp(-x)); }

float factor_to_length(const float* x, std::int64_t n, float length) {
  const float squares = nn::vec::dot(x, x, n) + static_cast<float>(nn::kNormFloor);
  return length / std::sqrt(squares);
}

}  // namespace

void leaky_key(const float* x, std::int64_t n, float decay, float scale, float* sums, float* key) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) sums[i] = decay * sums[i] + x[i];
  const float factor = factor_to_length(sums, n, scale);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) key[i] = factor * sums[i];
}

void mixed_value(const float* before, const float* after, std::int64_t n, float mix, float scale,
                 float* value) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) value[i] = mix * before[i] + (1 - mix) * after[i];
  const float factor = factor_to_length(value, n, scale);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) value[i] *= factor;
}

void gla_decays(float* x, std::int64_t n) {
  constexpr float kSmall = -80;  // below it sigmoid(x) is e^x, which a float would lose
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float root = std::sqrt(std::sqrt(std::sqrt(std::sqrt(sigmoid(x[i])))));
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

void lstm_step(const float* of_input, const float* of_last, std::int64_t width, std::int64_t begin,
               std::int64_t end, float* c, float* h) {
#pragma omp simd
  for (std::int64_t j = begin; j < end; ++j) {
    const auto gate = [&](std::int64_t which) {
      return of_input[which * width + j] + of_last[which * width + j];
    };
    const float in = sigmoid(gate(0)), forget = sigmoid(gate(1)), out = sigmoid(gate(3));
    c[j] = forget * c[j] + in * nn::vec::tanh(gate(2));
    h[j] = out * nn::vec::tanh(c[j]);
  }
}

void sru_step(const float* gates, const float* x, const SruCell& cell, std::int64_t d,
              std::int64_t begin, std::int64_t end, float* c, float* h) {
#pragma omp simd
  for (std::int64_t j = begin; j < end; ++j) {
    const float before = c[j];
    const float forget = sigmoid(gates[d + j] + cell.forget[j] * before + cell.forget_bias[j]);
    const float highway =
        sigmoid(gates[2 * d + j] + cell.highway[j] * before + cell.highway_bias[j]);
    c[j] = forget * before + (1 - forget) * gates[j];
    h[j] = x[j] + highway * (c[j] - x[j]);
  }
}

void add_scaled(const float* x, const float* z, float factor, std::int64_t n, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] + factor * z[i];
}

void scale(float factor, std::int64_t n, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

}  // namespace infer
