// The paired bootstrap: no difference, a clear one, one by chance; the same figures on any number
// of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "task/bootstrap.h"

namespace {

std::vector<task::ScoreBlock> blocks_of(double better_by, double noise, std::size_t n,
                                        std::uint64_t seed) {
  core::Rng rng(seed);
  std::vector<task::ScoreBlock> blocks;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t tokens = 50 + rng.below(100);
    const double a = static_cast<double>(tokens) * (4 + rng.normal());
    const double b = a - static_cast<double>(tokens) * (better_by + noise * rng.normal());
    blocks.push_back({a, b, tokens});
  }
  return blocks;
}

}  // namespace

DOCTEST_TEST_CASE("equal scores: no difference, and chance explains it") {
  auto blocks = blocks_of(0, 0, 40, 1);
  const auto found = task::compare(blocks, 500, 0.95, 1, 1);
  DOCTEST_CHECK(found.difference == 0);
  DOCTEST_CHECK(found.low == 0);
  DOCTEST_CHECK(found.high == 0);
  DOCTEST_CHECK(found.p == 1);
}

DOCTEST_TEST_CASE("a clear difference: its size, an interval around it, a small p") {
  const auto found = task::compare(blocks_of(0.1, 0.05, 200, 2), 2000, 0.95, 1, 2);
  DOCTEST_CHECK(found.difference == doctest::Approx(-0.1).epsilon(0.1));
  DOCTEST_CHECK(found.low < found.difference);
  DOCTEST_CHECK(found.high > found.difference);
  DOCTEST_CHECK(found.high < 0);
  // 200 blocks: the interval is about 4 standard errors wide.
  DOCTEST_CHECK(found.high - found.low ==
                doctest::Approx(4 * 0.05 / std::sqrt(200.0)).epsilon(0.25));
  DOCTEST_CHECK(found.p == doctest::Approx(1.0 / 2001));
}

DOCTEST_TEST_CASE("where there is no difference, p is below 0.1 about one time in ten") {
  int rejected = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    rejected += task::compare(blocks_of(0, 0.3, 60, 100 + seed), 200, 0.95, seed, 2).p < 0.1;
  DOCTEST_CHECK(rejected > 7);
  DOCTEST_CHECK(rejected < 38);
}

DOCTEST_TEST_CASE("one thread or several, the same figures") {
  const auto blocks = blocks_of(0.01, 0.2, 77, 5);
  const auto one = task::compare(blocks, 301, 0.9, 8, 1);
  const auto four = task::compare(blocks, 301, 0.9, 8, 4);
  DOCTEST_CHECK(one.low == four.low);
  DOCTEST_CHECK(one.high == four.high);
  DOCTEST_CHECK(one.p == four.p);
  DOCTEST_CHECK(task::compare(blocks, 301, 0.9, 9, 1).low != one.low);
}

DOCTEST_TEST_CASE("too little to compare") {
  DOCTEST_CHECK_THROWS_AS(task::compare({}, 100, 0.95, 1, 1), core::Error);
  DOCTEST_CHECK_THROWS_AS(task::compare({{1, 2, 3}, {}}, 100, 0.95, 1, 1), core::Error);
}
