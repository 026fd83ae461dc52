#include "nn/kernels/selective_scan_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

/// A piece: the channels [begin, begin + size) of a row.
template <class Real> struct Block {
  Block(const SelectiveScan<Real>& scan, std::int64_t piece)
      : row(piece / scan.blocks(scan.width)), begin(piece % scan.blocks(scan.width) * scan.kBlock),
        size(std::min(scan.kBlock, scan.width - begin)),
        parts((scan.steps + scan.kPart - 1) / scan.kPart) {}
  std::int64_t row, begin, size, parts;
};

/// Computes h (n, size) after step t from that before it; rows are `stride` apart. Calls read(j, i,
/// decay, h_ji).
template <class Real, class Read>
void advance(const SelectiveScan<Real>& scan, const Block<Real>& block, std::int64_t t,
    const Real* before, Real* h, std::int64_t stride, const Read& read) {
  const auto at = block.row * scan.steps + t, channel = at * scan.width + block.begin;
  const Real *const x = scan.x + channel, *const dt = scan.dt + channel;
  for (std::int64_t j = 0; j < scan.n; ++j) {
    const Real *const a = scan.a + j * scan.width + block.begin, *const from = before + j * stride;
    Real* const to = h + j * stride;
    const Real b = scan.b[at * scan.n + j];
#pragma omp simd
    for (std::int64_t i = 0; i < block.size; ++i) {
      const Real decay = vec::exp(dt[i] * a[i]);
      to[i] = decay * from[i] + dt[i] * x[i] * b;
      read(j, i, decay, to[i]);
    }
  }
}

}  // namespace

template <class Real> void SelectiveScan<Real>::forward(std::int64_t piece) const {
  const Block block(*this, piece);
  Real* h = states + block.row * (block.parts + 1) * n * width + block.begin;
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto at = block.row * steps + t;
    const Real* const before = h;
    Real* const out = y + at * width + block.begin;
    if (t % kPart == 0) h += n * width;
    std::fill_n(out, block.size, Real(0));
    advance(*this, block, t, before, h, width,
        [out, c = c + at * n](auto j, auto i, Real, Real state) { out[i] += c[j] * state; });
  }
}

template <class Real> void SelectiveScan<Real>::backward(std::int64_t piece) const {
  const Block block(*this, piece);
  const auto whole = n * width, own = n * kBlock;
  // Of a part: h before each step and after the last; the decays of each step. (., n, kBlock)
  std::vector<Real> kept((kPart + 1) * own), decays(kPart * own);
  Real *const d_h = d_state + block.row * whole + block.begin, *const d_rates = d_a +
                                                                                block.row * whole +
                                                                                block.begin;
  for (auto part = block.parts - 1; part >= 0; --part) {
    const auto first = part * kPart, end = std::min(first + kPart, steps);
    const Real* const start = states + (block.row * (block.parts + 1) + part) * whole + block.begin;
    for (std::int64_t j = 0; j < n; ++j)
      std::copy_n(start + j * width, block.size, kept.data() + j * kBlock);
    for (auto t = first; t < end; ++t) {
      Real *const before = kept.data() + (t - first) * own, *const decay =
                                                                decays.data() + (t - first) * own;
      advance(*this, block, t, before, before + own, kBlock,
          [=](auto j, auto i, Real value, Real) { decay[j * kBlock + i] = value; });
    }
    for (auto t = end - 1; t >= first; --t) {
      const auto at = block.row * steps + t, channel = at * width + block.begin;
      const Real *const xs = x + channel, *const rate = dt + channel, *const d_y = y + channel;
      Real *const dx = d_x + channel, *const d_rate = d_dt + channel;
      std::fill_n(dx, block.size, Real(0));
      std::fill_n(d_rate, block.size, Real(0));
      for (std::int64_t j = 0; j < n; ++j) {
        const auto place = (t - first) * own + j * kBlock;
        const Real *const as = a + j * width + block.begin, *const decay = decays.data() + place,
                          *const before = kept.data() + place, *const h = before + own;
        Real *const d_hs = d_h + j * width, *const d_as = d_rates + j * width;
        const Real bs = b[at * n + j], cs = c[at * n + j];
        Real for_b = 0, for_c = 0;
#pragma omp simd reduction(+ : for_b, for_c)
        for (std::int64_t i = 0; i < block.size; ++i) {
          const Real d = d_hs[i] + d_y[i] * cs, passed = d * decay[i], d_log = passed * before[i];
          for_c += d_y[i] * h[i];
          for_b += d * rate[i] * xs[i];
          dx[i] += d * bs;
          d_rate[i] += d_log * as[i];
          d_as[i] += d_log * rate[i];
          d_hs[i] = passed;
        }
        d_b[(piece * steps + t) * n + j] = for_b;
        d_c[(piece * steps + t) * n + j] = for_c;
      }
#pragma omp simd
      for (std::int64_t i = 0; i < block.size; ++i) {
        d_rate[i] += dx[i] * xs[i];
        dx[i] *= rate[i];
      }
    }
  }
}

template struct SelectiveScan<float>;
template struct SelectiveScan<double>;

}  // namespace nn
