#include "nn/sru_scan_kernels.h"

#include <cmath>

#include "nn/vector_math.h"

namespace nn {
namespace {

inline float sigmoid(float x) { return 1.0f / (1.0f + vec::exp(-x)); }
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

template <class Float>
void sru_forward(const SruRow<Float>& row, std::int64_t begin, std::int64_t end, Float* cells,
                 Float* h) {
  const Float *const wf = row.forget, *const wr = row.highway, *const bf = row.forget_bias,
                     *const br = row.highway_bias;
  const Float* before = row.start;
  for (std::int64_t t = 0; t < row.steps; ++t) {
    const Float *const u = row.gates + t * 3 * row.d, *const uf = u + row.d, *const ur = uf + row.d,
                       *const x = row.x + t * row.d;
    Float *const cell = cells + t * row.d, *const out = h + t * row.d;
    const Float* const dropout = row.dropout;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const Float c = before[i];
      const Float f = sigmoid(uf[i] + wf[i] * c + bf[i]);
      Float r = sigmoid(ur[i] + wr[i] * c + br[i]);
      if (dropout != nullptr) r *= dropout[i];
      const Float next = f * (c - u[i]) + u[i];
      cell[i] = next;
      out[i] = x[i] + r * (next - x[i]);
    }
    before = cell;
  }
}

template <class Float>
void sru_backward(const SruRow<Float>& row, std::int64_t begin, std::int64_t end,
                  const Float* cells, const SruGradients<Float>& g) {
  const std::int64_t n = end - begin;
  const Float *const wf = row.forget + begin, *const wr = row.highway + begin,
                     *const bf = row.forget_bias + begin, *const br = row.highway_bias + begin;
  const Float* const dropout = row.dropout == nullptr ? nullptr : row.dropout + begin;
  Float dc[kSruChannels], d_wf[kSruChannels], d_wr[kSruChannels], d_bf[kSruChannels],
      d_br[kSruChannels];
  for (std::int64_t i = 0; i < n; ++i) {
    dc[i] = g.d_last == nullptr ? 0 : g.d_last[begin + i];
    d_wf[i] = d_wr[i] = d_bf[i] = d_br[i] = 0;
  }
  for (std::int64_t t = row.steps - 1; t >= 0; --t) {
    const std::int64_t at = t * row.d + begin, gate = t * 3 * row.d + begin;
    const Float *const u = row.gates + gate, *const uf = u + row.d, *const ur = uf + row.d;
    const Float *const x = row.x + at, *const dh = g.d_h + at, *const cell = cells + at;
    const Float* const before = t == 0 ? row.start + begin : cell - row.d;
    Float *const du = g.d_gates + gate, *const duf = du + row.d, *const dur = duf + row.d,
                 *const dx = g.d_x + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const Float c = before[i], m = dropout == nullptr ? Float(1) : dropout[i];
      const Float f = sigmoid(uf[i] + wf[i] * c + bf[i]), r = sigmoid(ur[i] + wr[i] * c + br[i]);
      const Float d_cell = dc[i] + dh[i] * r * m;
      const Float d_f = d_cell * (c - u[i]) * f * (1 - f);
      const Float d_r = dh[i] * m * (cell[i] - x[i]) * r * (1 - r);
      dx[i] = dh[i] * (1 - r * m);
      du[i] = d_cell * (1 - f);
      duf[i] = d_f;
      dur[i] = d_r;
      dc[i] = d_cell * f + d_f * wf[i] + d_r * wr[i];
      d_wf[i] += d_f * c;
      d_wr[i] += d_r * c;
      d_bf[i] += d_f;
      d_br[i] += d_r;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    g.d_start[begin + i] = dc[i];
    Float* const weights = g.d_weights + begin + i;
    weights[0] = d_wf[i];
    weights[row.d] = d_wr[i];
    weights[2 * row.d] = d_bf[i];
    weights[3 * row.d] = d_br[i];
  }
}

template void sru_forward(const SruRow<float>&, std::int64_t, std::int64_t, float*, float*);
template void sru_forward(const SruRow<double>&, std::int64_t, std::int64_t, double*, double*);
template void sru_backward(const SruRow<float>&, std::int64_t, std::int64_t, const float*,
                           const SruGradients<float>&);
template void sru_backward(const SruRow<double>&, std::int64_t, std::int64_t, const double*,
                           const SruGradients<double>&);

}  // namespace nn
