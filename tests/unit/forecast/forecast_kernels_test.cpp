// The unit that forecasts vectors, compared with complex arithmetic from its formula.

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "forecast/forecast_kernels.h"

namespace {

using Point = std::complex<double>;

struct Problem {
  forecast::Shape shape;
  std::int64_t steps;
  std::vector<float> x, weights, direction;
};

Problem problem_of(std::int64_t heads) {
  Problem p{{3, heads, 4}, 12, {}, {}, {}};
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < p.steps * 6; ++i) p.x.push_back(normal(random));
  for (std::int64_t i = 0; i < p.shape.parameters(); ++i) p.weights.push_back(.3F * normal(random));
  for (std::int64_t i = 0; i < p.steps * 6; ++i) p.direction.push_back(normal(random));
  return p;
}

/// Returns row `i` of map `map` times the points x.
Point mapped(const std::vector<double>& w, int map, int i, const Point* x) {
  Point sum = 0;
  for (int j = 0; j < 3; ++j) {
    const auto at = static_cast<std::size_t>(map * 18 + (i * 3 + j) * 2);
    sum += Point(w[at], w[at + 1]) * x[j];
  }
  return sum;
}

/// Returns the sum of direction times forecasts in double precision.
double plain(const Problem& p, const std::vector<double>& w, std::vector<double>* forecasts) {
  const auto row = [&](std::int64_t t) {
    std::vector<Point> points;
    for (int i = 0; i < 3; ++i)
      points.emplace_back(p.x[static_cast<std::size_t>(t * 6 + 2 * i)],
          p.x[static_cast<std::size_t>(t * 6 + 2 * i + 1)]);
    return points;
  };
  const int each = static_cast<int>(3 / p.shape.heads);
  double total = 0;
  for (std::int64_t t = 0; t < p.steps; ++t) {
    Point read[3] = {};
    for (int head = 0; head < p.shape.heads && t > 0; ++head) {
      double bottom = 0;
      Point top[3] = {};
      for (std::int64_t s = 0; s < t; ++s) {
        double dot = 0;
        for (int i = head * each; i < (head + 1) * each; ++i)
          dot +=
              std::real(mapped(w, 0, i, row(t).data()) * std::conj(mapped(w, 0, i, row(s).data())));
        const double weight = std::exp(p.shape.beta * dot);
        bottom += weight;
        for (int i = head * each; i < (head + 1) * each; ++i)
          top[i] += weight * mapped(w, 1, i, row(s + 1).data());
      }
      for (int i = head * each; i < (head + 1) * each; ++i) read[i] = top[i] / bottom;
    }
    for (int i = 0; i < 3; ++i) {
      const auto y = mapped(w, 2, i, read);
      const auto at = static_cast<std::size_t>(t * 6 + 2 * i);
      total += y.real() * p.direction[at] + y.imag() * p.direction[at + 1];
      if (forecasts != nullptr) forecasts->insert(forecasts->end(), {y.real(), y.imag()});
    }
  }
  return total;
}

}  // namespace

DOCTEST_TEST_CASE(
    "forecasts and their gradients are those of the formula, with one head and three") {
  for (const std::int64_t heads : {1, 3}) {
    const auto p = problem_of(heads);
    forecast::MemoryUnit unit(p.shape, p.steps);
    std::vector<float> y(p.x.size()), gradient(p.weights.size(), 0.0F);
    unit.forward(p.x.data(), p.steps, p.weights.data(), y.data());
    unit.backward(p.x.data(), p.steps, p.weights.data(), p.direction.data(), gradient.data());
    std::vector<double> w(p.weights.begin(), p.weights.end()), expected;
    plain(p, w, &expected);
    for (std::size_t i = 0; i < y.size(); ++i) DOCTEST_CHECK(std::abs(y[i] - expected[i]) < 1e-5);
    for (std::size_t i = 0; i < w.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double value = w[i];
      w[i] = value + kStep;
      const double above = plain(p, w, nullptr);
      w[i] = value - kStep;
      const double below = plain(p, w, nullptr);
      w[i] = value;
      DOCTEST_CHECK(
          gradient[i] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-4).scale(1));
    }
  }
}
