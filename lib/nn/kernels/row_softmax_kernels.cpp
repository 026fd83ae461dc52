#include "nn/kernels/row_softmax_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// CMakeLists.txt builds this file with -fno-associative-math: exp_negative relies on the order of
// additions to round.

namespace nn {
namespace {

constexpr std::int64_t kLanes = 32;  // independent sums, so that loops vectorise

/// e^x for x <= 0 to 2 units in the last place, without a branch: 2^n times a polynomial on
/// [-ln2/2, ln2/2].
inline float exp_negative(float x) {
  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
  constexpr float kRound = 12582912.0F;
  x = x < -87.0F ? -87.0F : x;
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040;  // Taylor series: the remainder is below 2^-27 on this interval
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent =
      (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound)) + 127;
  return p * std::bit_cast<float>(exponent << 23);
}

inline double exp_negative(double x) { return std::exp(x); }

template <class Real> Real row_maximum(const Real* row, std::int64_t n) {
  Real lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -std::numeric_limits<Real>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t j = 0; j < kLanes; ++j)
      lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], row[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

/// Replaces the row by exp(row - maximum). Returns the sum.
template <class Real> double exponentiate(Real* row, std::int64_t n, Real maximum) {
  Real lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) {
      row[i + j] = exp_negative(row[i + j] - maximum);
      lanes[j] += row[i + j];
    }
  }
  double sum = 0;
  for (; i < n; ++i) sum += row[i] = exp_negative(row[i] - maximum);
  for (const Real lane : lanes) sum += lane;
  return sum;
}

}  // namespace

template <class Real>
void row_softmax_cpu(const SoftmaxRows<Real>& rows, std::int64_t begin, std::int64_t end) {
  for (auto r = begin; r < end; ++r) {
    Real* const row = rows.scores + r * rows.stride;
    const Real maximum = row_maximum(row, rows.n), hit = row[rows.targets[r]];
    const double sum = exponentiate(row, rows.n, maximum);
    rows.sum[r] = static_cast<Real>(sum);
    rows.log_z[r] = static_cast<Real>(maximum + std::log(sum));
    rows.log_prob[r] = static_cast<Real>((hit - maximum) - std::log(sum));
  }
}

template void row_softmax_cpu(const SoftmaxRows<float>&, std::int64_t, std::int64_t);
template void row_softmax_cpu(const SoftmaxRows<double>&, std::int64_t, std::int64_t);

}  // namespace nn
