#include "nn/kernels/gated_keys_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/row_math.h"

namespace nn {

template <class Real>
void gated_keys_forward_cpu(
    const GatedInputs<Real>& in, const GatedOutputs<Real>& out, std::int64_t row) {
  const std::int64_t d = in.heads * in.width, w = in.width;
  std::vector<Real> sums(in.before + row * d, in.before + (row + 1) * d);
  std::vector<Real> levels(in.levels + row * in.heads, in.levels + (row + 1) * in.heads);
  for (std::int64_t t = 0; t < in.steps; ++t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h;
      Real* const sum = sums.data() + h * w;  // (width), like x and key
      const Real* const x = in.x + row * in.x_row + t * in.x_step + h * w;
      Real* const key = out.keys + head * w;
      const Real faded = levels[h] + in.decay[head];
      const Real level = std::max(faded, in.gate[head]);
      const Real own = std::exp(in.gate[head] - level), kept = std::exp(faded - level);
      Real square = Real(kNormFloor);
#pragma omp simd reduction(+ : square)
      for (std::int64_t c = 0; c < w; ++c) {
        sum[c] = kept * sum[c] + own * x[c];
        square += sum[c] * sum[c];
      }
      const Real norm = std::sqrt(square), factor = 1 / norm;
      levels[h] = out.levels[head] = level;
      out.norms[head] = norm, out.own[head] = own, out.kept[head] = kept;
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) key[c] = factor * sum[c];
    }
  }
}

template <class Real>
void gated_keys_backward_cpu(const GatedInputs<Real>& in, const GatedOutputs<Real>& made,
    const GatedGradients<Real>& g, std::int64_t row) {
  // sums_t = keys_t norm_t. d_sum below is dL/d sums_t.
  const std::int64_t d = in.heads * in.width, w = in.width;
  std::vector<Real> carried(static_cast<std::size_t>(d), Real(0));
  for (std::int64_t t = in.steps - 1; t >= 0; --t) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      const std::int64_t head = (row * in.steps + t) * in.heads + h, at = head * w;
      Real* const d_sum = carried.data() + h * w;  // (width), like the pointers below
      const Real* const x = in.x + row * in.x_row + t * in.x_step + h * w;
      Real* const dx = g.dx + at;
      const Real own = made.own[head], kept = made.kept[head];
      if (g.d_sums != nullptr) vec::add(g.d_sums + at, w, d_sum);
      if (g.d_keys != nullptr) {
        const Real along = vec::dot(made.keys + at, g.d_keys + at, w),
                   factor = 1 / made.norms[head];
#pragma omp simd
        for (std::int64_t c = 0; c < w; ++c)
          d_sum[c] += factor * (g.d_keys[at + c] - along * made.keys[at + c]);
      }
      g.d_gate[head] = own * vec::dot(d_sum, x, w);
      g.d_decay[head] =
          kept * (t > 0 ? made.norms[head - in.heads] * vec::dot(d_sum, made.keys + at - d, w)
                        : vec::dot(d_sum, in.before + row * d + h * w, w));
#pragma omp simd
      for (std::int64_t c = 0; c < w; ++c) {
        dx[c] = own * d_sum[c];
        d_sum[c] *= kept;
      }
    }
  }
  std::copy(carried.begin(), carried.end(), g.d_before + row * d);
}

#define NN_GATED_FOR(Real)                                                                   \
  template void gated_keys_forward_cpu(                                                      \
      const GatedInputs<Real>&, const GatedOutputs<Real>&, std::int64_t);                    \
  template void gated_keys_backward_cpu(const GatedInputs<Real>&, const GatedOutputs<Real>&, \
      const GatedGradients<Real>&, std::int64_t);
NN_GATED_FOR(float)
NN_GATED_FOR(double)
#undef NN_GATED_FOR

}  // namespace nn
