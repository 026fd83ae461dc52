#include "train/optimiser_kernels.h"

namespace train {

void adam_span(float* __restrict w, const float* __restrict g, float* __restrict m,
               float* __restrict v, std::int64_t n, const AdamNumbers& numbers) {
  const AdamNumbers c = numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    const float gi = g[i] * c.scale;
    const float mi = c.b1 * m[i] + c.rest1 * gi, vi = c.b2 * v[i] + c.rest2 * (gi * gi);
    m[i] = mi;
    v[i] = vi;
    w[i] = c.keep * w[i] - c.step * mi / (c.root * __builtin_sqrtf(vi) + c.epsilon);
  }
}

void nag_span(float* __restrict w, const float* __restrict g, float* __restrict u, std::int64_t n,
              const NagNumbers& numbers) {
  const NagNumbers c = numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    const float gi = g[i] * c.scale, ui = u[i];
    w[i] = c.keep * w[i] + c.pull * ui - c.push * gi;
    u[i] = c.fade * ui - c.lr * gi;
  }
}

double square_sum(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace train
