#include "task/student_t.h"

#include <algorithm>
#include <cmath>

namespace task {
namespace {

constexpr double kAsGoodAsNormal = 1e5;  // degrees of freedom
constexpr int kMostTerms = 10'000;

// The continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), evaluated
// from the front (Lentz's method).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kClose = 1e-15;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d), c = not_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d), c = not_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) < kClose) break;
  }
  return value;
}

// Computes the regularised incomplete beta function I_x(a, b); y is 1 - x, exact even if x is near
// 1.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

}  // namespace

double t_two_sided(double t, double freedom) {
  if (freedom > kAsGoodAsNormal) return std::erfc(std::abs(t) / std::sqrt(2.0));
  if (std::isinf(t)) return 0;
  const double sum = freedom + t * t;
  return incomplete_beta(freedom / 2, 0.5, freedom / sum, t * t / sum);
}

double t_quantile(double confidence, double freedom) {
  double low = 0, high = 1;
  while (t_two_sided(high, freedom) > 1 - confidence && high < 1e300) low = high, high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (t_two_sided(middle, freedom) > 1 - confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace task
