#include <doctest/doctest.h>

#include <cmath>

#include "nn/layers/positions.h"

DOCTEST_TEST_CASE("sinusoids: a block of sines, a block of cosines, zero in an odd last column") {
  const auto table = nn::sinusoids(torch::tensor({0, 1, 7}, torch::kInt64), 9);
  DOCTEST_CHECK(table.sizes() == torch::IntArrayRef({3, 9}));
  for (std::int64_t row = 0; row < 3; ++row) {
    const double position = row == 2 ? 7 : static_cast<double>(row);
    for (std::int64_t i = 0; i < 4; ++i) {
      const double angle = position * std::exp(-static_cast<double>(i) * std::log(10000.0) / 3);
      DOCTEST_CHECK(
          table[row][i].item<double>() == doctest::Approx(std::sin(angle)).epsilon(1e-12));
      DOCTEST_CHECK(
          table[row][4 + i].item<double>() == doctest::Approx(std::cos(angle)).epsilon(1e-12));
    }
    DOCTEST_CHECK(table[row][8].item<double>() == 0);
  }
}

DOCTEST_TEST_CASE(
    "a rotation keeps lengths, and its products depend on the distance alone, however far") {
  torch::manual_seed(1);
  const auto options = torch::TensorOptions(torch::kFloat64);
  const auto q = torch::randn({1, 1, 1, 6}, options), k = torch::randn({1, 1, 1, 6}, options);
  const auto product = [&](std::int64_t at_q, std::int64_t at_k) {
    const auto turn = [&](std::int64_t p, const torch::Tensor& x) {
      return nn::Rotation(torch::tensor({{p}}, torch::kInt64), 6, {}, options).apply(x);
    };
    DOCTEST_CHECK(turn(at_q, q).norm().item<double>() == doctest::Approx(q.norm().item<double>()));
    return (turn(at_q, q) * turn(at_k, k)).sum().item<double>();
  };
  DOCTEST_CHECK(product(5, 3) == doctest::Approx(product(1000002, 1000000)));
  DOCTEST_CHECK(product(5, 3) != doctest::Approx(product(5, 4)));
}

DOCTEST_TEST_CASE("slopes of ALiBi, also where the heads are no power of two") {
  const auto eight = nn::alibi_slopes(8);
  for (std::int64_t h = 0; h < 8; ++h)
    DOCTEST_CHECK(eight[h].item<double>() == std::pow(2.0, -(h + 1.0)));
  const auto twelve = nn::alibi_slopes(12);  // the eight, then 2^-.5, 2^-1.5, ...
  DOCTEST_CHECK(torch::equal(twelve.slice(0, 0, 8), eight));
  for (std::int64_t h = 0; h < 4; ++h)
    DOCTEST_CHECK(twelve[8 + h].item<double>() == doctest::Approx(std::pow(2.0, -(h + 0.5))));
}
