#include "nn/kernels/sru_scan_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/vector_math.h"

namespace nn {
namespace {

constexpr std::int64_t kChannels = 128;  // channels of a piece

inline float sigmoid(float x) { return 1.0f / (1.0f + vec::exp(-x)); }
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

std::int64_t pieces_of_row(std::int64_t d) { return (d + kChannels - 1) / kChannels; }

/// A row's steps and the channels [begin, end) of a piece.
template <class Float> struct Piece {
  Piece(const SruInputs<Float>& in, std::int64_t piece)
      : row(piece / pieces_of_row(in.d)),
        steps(in.row_steps == nullptr ? in.steps : in.row_steps[row]),
        begin(piece % pieces_of_row(in.d) * kChannels), end(std::min(begin + kChannels, in.d)) {}
  std::int64_t row, steps, begin, end;
};

}  // namespace

template <class Float>
void sru_forward_cpu(
    const SruInputs<Float>& in, const SruResults<Float>& results, std::int64_t piece) {
  const Piece part(in, piece);
  const std::int64_t row = part.row, steps = part.steps, begin = part.begin, end = part.end;
  const Float *const wf = in.forget, *const wr = in.highway, *const bf = in.forget_bias,
                     *const br = in.highway_bias;
  const Float* const dropout = in.dropout == nullptr ? nullptr : in.dropout + row * in.d;
  const Float* before = in.start + row * in.d;
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t at = (row * in.steps + t) * in.d;  // of (B, T, d); gates are (B, T, 3, d)
    const Float *const u = in.gates + 3 * at, *const uf = u + in.d, *const ur = uf + in.d,
                       *const x = in.x + at;
    Float *const cell = results.cells + at, *const out = results.h + at;
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
  std::copy(before + begin, before + end, results.last + row * in.d + begin);
}

template <class Float>
void sru_backward_cpu(const SruInputs<Float>& in, const Float* cells, const SruGradients<Float>& g,
    std::int64_t piece) {
  const Piece part(in, piece);
  const std::int64_t row = part.row, steps = part.steps, begin = part.begin, end = part.end;
  const std::int64_t n = end - begin, d = in.d, channel = row * d + begin;
  const Float *const wf = in.forget + begin, *const wr = in.highway + begin,
                     *const bf = in.forget_bias + begin, *const br = in.highway_bias + begin;
  const Float* const dropout = in.dropout == nullptr ? nullptr : in.dropout + channel;
  // (n) each: the cell's gradient, carried from step to step, and sums over steps
  Float dc[kChannels], d_wf[kChannels], d_wr[kChannels], d_bf[kChannels], d_br[kChannels];
  for (std::int64_t i = 0; i < n; ++i) {
    dc[i] = g.d_last == nullptr ? 0 : g.d_last[channel + i];
    d_wf[i] = d_wr[i] = d_bf[i] = d_br[i] = 0;
  }
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    const std::int64_t at = (row * in.steps + t) * d + begin,
                       gate = (row * in.steps + t) * 3 * d + begin;
    const Float *const u = in.gates + gate, *const uf = u + d, *const ur = uf + d;
    const Float *const x = in.x + at, *const dh = g.d_h + at, *const cell = cells + at;
    const Float* const before = t == 0 ? in.start + channel : cell - d;
    Float *const du = g.d_gates + gate, *const duf = du + d, *const dur = duf + d,
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
    g.d_start[channel + i] = dc[i];
    Float* const weights = g.d_weights + row * 4 * d + begin + i;
    weights[0] = d_wf[i];
    weights[d] = d_wr[i];
    weights[2 * d] = d_bf[i];
    weights[3 * d] = d_br[i];
  }
}

std::int64_t sru_pieces(std::int64_t rows, std::int64_t d) { return rows * pieces_of_row(d); }

template void sru_forward_cpu(const SruInputs<float>&, const SruResults<float>&, std::int64_t);
template void sru_forward_cpu(const SruInputs<double>&, const SruResults<double>&, std::int64_t);
template void sru_backward_cpu(
    const SruInputs<float>&, const float*, const SruGradients<float>&, std::int64_t);
template void sru_backward_cpu(
    const SruInputs<double>&, const double*, const SruGradients<double>&, std::int64_t);

}  // namespace nn
