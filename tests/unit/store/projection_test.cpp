// Principal components, compared with power iteration and with the best possible projection.
#include "store/projection.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"

namespace {

using Matrix = std::vector<double>;

Matrix random_symmetric(std::size_t n, std::uint64_t seed) {
  core::Rng rng(seed);
  Matrix a(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) a[i * n + j] = a[j * n + i] = rng.normal();
  return a;
}

// Returns the eigenvector of the largest eigenvalue of a positive semidefinite matrix, by power
// iteration.
std::vector<double> strongest(const Matrix& a, std::size_t n) {
  std::vector<double> v(n, 1), next(n);
  v[0] = 2;
  for (int step = 0; step < 20'000; ++step) {
    for (std::size_t i = 0; i < n; ++i)
      next[i] = std::inner_product(
          v.begin(), v.end(), a.begin() + static_cast<std::ptrdiff_t>(i * n), 0.0);
    const double length =
        std::sqrt(std::inner_product(next.begin(), next.end(), next.begin(), 0.0));
    for (std::size_t i = 0; i < n; ++i) v[i] = next[i] / length;
  }
  return v;
}

// Keys with coordinates of very different variances, rotated, around a mean.
std::vector<store::Half> slanted_keys(std::size_t n, std::size_t width) {
  core::Rng rng(5);
  const auto turn = store::symmetric_eigen(random_symmetric(width, 9), width).vectors;
  std::vector<float> keys(n * width);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < width; ++j) {
      const double number = rng.normal() / static_cast<double>(1 + j * j) + (j == 3 ? 2 : 0);
      for (std::size_t k = 0; k < width; ++k)
        keys[i * width + k] += static_cast<float>(number * turn[j * width + k]);
    }
  std::vector<store::Half> halves(keys.size());
  store::to_half(keys.data(), halves);
  return halves;
}

}  // namespace

DOCTEST_TEST_CASE("eigenvectors are what the matrix only stretches, at right angles, all of it") {
  for (const std::size_t n : {1, 2, 7, 40}) {
    const Matrix a = random_symmetric(n, n);
    const auto found = store::symmetric_eigen(a, n);
    double trace = 0, sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      trace += a[i * n + i], sum += found.values[i];
      DOCTEST_CHECK((i == 0 || found.values[i - 1] >= found.values[i]));
      for (std::size_t k = 0; k < n; ++k) {
        double stretched = 0, product = 0;
        for (std::size_t j = 0; j < n; ++j) {
          stretched += a[k * n + j] * found.vectors[i * n + j];
          product += found.vectors[k * n + j] * found.vectors[i * n + j];
        }
        DOCTEST_CHECK(std::abs(stretched - found.values[i] * found.vectors[i * n + k]) < 1e-10);
        DOCTEST_CHECK(std::abs(product - (i == k ? 1 : 0)) < 1e-12);
      }
    }
    DOCTEST_CHECK(std::abs(trace - sum) < 1e-10);
  }
  DOCTEST_CHECK(store::symmetric_eigen(Matrix(9), 3).values == std::vector<double>(3));
}

DOCTEST_TEST_CASE("a projection's rows are the components that power iteration finds, one by one") {
  constexpr std::size_t kRows = 500, kWidth = 12, kTo = 4;
  const auto keys = slanted_keys(kRows, kWidth);
  std::vector<float> floats(keys.size());
  store::to_float(keys.data(), floats);
  for (const auto metric : {store::Metric::ip, store::Metric::l2}) {
    Matrix sums(kWidth * kWidth);
    std::vector<double> mean(kWidth);
    for (std::size_t i = 0; i < floats.size() && metric == store::Metric::l2; ++i)
      mean[i % kWidth] += floats[i] / static_cast<double>(kRows);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t p = 0; p < kWidth; ++p)
        for (std::size_t q = 0; q < kWidth; ++q)
          sums[p * kWidth + q] +=
              (floats[i * kWidth + p] - mean[p]) * (floats[i * kWidth + q] - mean[q]);
    const auto projection = store::Projection::learn(keys, kWidth, kTo, metric);
    std::vector<float> rows(projection.matrix().size());
    store::to_float(projection.matrix().data(), rows);
    for (std::size_t i = 0; i < kTo; ++i) {
      const auto v = strongest(sums, kWidth);
      double along = 0, strength = 0;
      for (std::size_t p = 0; p < kWidth; ++p) {
        along += v[p] * rows[i * kWidth + p];
        for (std::size_t q = 0; q < kWidth; ++q) strength += v[p] * v[q] * sums[p * kWidth + q];
      }
      DOCTEST_CHECK(std::abs(std::abs(along) - 1) < 2e-3);  // of float16
      for (std::size_t p = 0; p < kWidth; ++p)
        for (std::size_t q = 0; q < kWidth; ++q) sums[p * kWidth + q] -= strength * v[p] * v[q];
    }
    // Applying the projection multiplies by these rows.
    const auto made = projection.apply({floats.data(), 3 * kWidth});
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < kTo; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < kWidth; ++k)
          sum += static_cast<double>(floats[i * kWidth + k]) * rows[j * kWidth + k];
        DOCTEST_CHECK(std::abs(made[i * kTo + j] - sum) < 1e-5);
      }
  }
}

DOCTEST_TEST_CASE("fewer rows than components are refused") {
  const auto keys = slanted_keys(3, 12);
  DOCTEST_CHECK_THROWS_AS(store::Projection::learn(keys, 12, 4, store::Metric::ip), core::Error);
}
