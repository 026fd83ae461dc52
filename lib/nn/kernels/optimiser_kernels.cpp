#include "nn/kernels/optimiser_kernels.h"

namespace nn {

void adam_cpu(const AdamSpan& span, std::int64_t begin, std::int64_t end) {
  const AdamSpan c = span;
  const float scale = *c.scale;
  float* __restrict const w = c.w, * __restrict const m = c.m, * __restrict const v = c.v;
  const float* __restrict const g = c.g;
  for (std::int64_t i = begin; i < end; ++i) {
    const float gi = g[i] * scale;
    const float mi = c.b1 * m[i] + c.rest1 * gi, vi = c.b2 * v[i] + c.rest2 * (gi * gi);
    m[i] = mi;
    v[i] = vi;
    w[i] = c.keep * w[i] - c.step * mi / (c.root * __builtin_sqrtf(vi) + c.epsilon);
  }
}

void nag_cpu(const NagSpan& span, std::int64_t begin, std::int64_t end) {
  const NagSpan c = span;
  const float scale = *c.scale;
  float* __restrict const w = c.w, * __restrict const u = c.u;
  const float* __restrict const g = c.g;
  for (std::int64_t i = begin; i < end; ++i) {
    const float gi = g[i] * scale, ui = u[i];
    w[i] = c.keep * w[i] + c.pull * ui - c.push * gi;
    u[i] = c.fade * ui - c.lr * gi;
  }
}

double square_sum(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace nn
