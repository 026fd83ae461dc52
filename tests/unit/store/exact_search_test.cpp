#include "store/exact_search.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/rng.h"

#include <doctest/doctest.h>

namespace {

using store::ExactSearch;
using store::Half;
using store::Metric;

struct Problem {
  std::int64_t width, k;
  std::vector<Half> keys;
  std::vector<float> queries;
  std::int64_t rows() const { return static_cast<std::int64_t>(keys.size()) / width; }
  std::int64_t n() const { return static_cast<std::int64_t>(queries.size()) / width; }
};

Problem make_problem(
    std::int64_t rows, std::int64_t width, std::int64_t n, std::int64_t k, std::uint64_t seed = 1) {
  core::Rng rng(seed);
  Problem problem{width, k, {}, {}};
  std::vector<float> keys(static_cast<std::size_t>(rows * width));
  for (float& x : keys) x = static_cast<float>(rng.normal());
  problem.keys.resize(keys.size());
  store::to_half(keys.data(), problem.keys);
  problem.queries.resize(static_cast<std::size_t>(n * width));
  for (float& x : problem.queries) x = static_cast<float>(rng.normal());
  return problem;
}

struct Found {
  std::vector<std::int64_t> ids;
  std::vector<float> scores;
};

Found search(const Problem& problem, Metric metric, std::int64_t threads) {
  Found found;
  const auto n = static_cast<std::size_t>(problem.n() * problem.k);
  found.ids.resize(n), found.scores.resize(n);
  ExactSearch(problem.keys, problem.width, metric)
      .search(problem.queries, problem.k, threads, found.ids, found.scores);
  return found;
}

// Returns every score in float64.
std::vector<double> plain_scores(const Problem& problem, Metric metric, std::int64_t query) {
  std::vector<float> key(static_cast<std::size_t>(problem.width));
  std::vector<double> scores;
  for (std::int64_t row = 0; row < problem.rows(); ++row) {
    store::to_float(&problem.keys[static_cast<std::size_t>(row * problem.width)], key);
    double score = 0;
    for (std::int64_t j = 0; j < problem.width; ++j) {
      const double x = problem.queries[static_cast<std::size_t>(query * problem.width + j)];
      const double y = key[static_cast<std::size_t>(j)];
      score += metric == Metric::ip ? x * y : -(x - y) * (x - y);
    }
    scores.push_back(score);
  }
  return scores;
}

// Checks that the hits are the k best of all keys, each with its own score, best first.
void expect_nearest(const Problem& problem, Metric metric, const Found& found, double tolerance) {
  for (std::int64_t q = 0; q < problem.n(); ++q) {
    const auto all = plain_scores(problem, metric, q);
    auto sorted = all;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    std::vector<bool> seen(all.size());
    for (std::int64_t i = 0; i < problem.k; ++i) {
      const auto at = static_cast<std::size_t>(q * problem.k + i);
      const std::int64_t id = found.ids[at];
      if (i >= problem.rows()) {
        DOCTEST_REQUIRE(id == -1);
        DOCTEST_REQUIRE(found.scores[at] == -std::numeric_limits<float>::infinity());
        continue;
      }
      DOCTEST_REQUIRE((id >= 0 && id < problem.rows()));
      DOCTEST_REQUIRE(!seen[static_cast<std::size_t>(id)]);
      seen[static_cast<std::size_t>(id)] = true;
      DOCTEST_REQUIRE(found.scores[at] ==
                      doctest::Approx(all[static_cast<std::size_t>(id)]).epsilon(tolerance));
      DOCTEST_REQUIRE(found.scores[at] ==
                      doctest::Approx(sorted[static_cast<std::size_t>(i)]).epsilon(tolerance));
      if (i > 0) DOCTEST_REQUIRE(found.scores[at] <= found.scores[at - 1]);
    }
  }
}

}  // namespace

DOCTEST_TEST_CASE("exact search finds the nearest keys of any shape of problem, both metrics") {
  struct Shape {
    std::int64_t rows, width, n, k;
  };
  for (const Shape& shape :
      {Shape{1, 1, 1, 1}, Shape{5, 3, 2, 8}, Shape{100, 16, 1, 10}, Shape{97, 33, 3, 97},
          Shape{1000, 40, 33, 7}, Shape{500, 17, 70, 100}, Shape{193, 64, 129, 1}}) {
    const auto problem = make_problem(shape.rows, shape.width, shape.n, shape.k);
    for (const Metric metric : {Metric::ip, Metric::l2})
      for (const std::int64_t threads : {1, 3}) {
        DOCTEST_CAPTURE(shape.rows);
        DOCTEST_CAPTURE(shape.n);
        DOCTEST_CAPTURE(threads);
        expect_nearest(problem, metric, search(problem, metric, threads), 1e-5);
      }
  }
}

DOCTEST_TEST_CASE("a threshold from a sample loses nothing") {
  for (const std::int64_t n : {1, 2, 40}) {
    const auto problem = make_problem(60'000, 8, n, 50);
    for (const Metric metric : {Metric::ip, Metric::l2})
      expect_nearest(problem, metric, search(problem, metric, 2), 1e-5);
  }
}

DOCTEST_TEST_CASE("where the sample misleads, the search starts again without it") {
  // The sampled rows are the only good ones: far fewer than k.
  auto problem = make_problem(40'000, 4, 5, 8'000);
  std::fill(problem.keys.begin(), problem.keys.end(), Half{0});
  const std::vector<float> good{1, 1, 1, 1};
  for (std::size_t i = 0; i < 4'096; ++i)
    store::to_half(good.data(), std::span(&problem.keys[i * 40'000 / 4'096 * 4], 4));
  std::fill(problem.queries.begin(), problem.queries.end(), 1.0F);
  problem.k = 8'000;
  const auto found = search(problem, Metric::ip, 2);
  for (std::size_t i = 0; i < found.ids.size(); ++i) {
    DOCTEST_REQUIRE(found.ids[i] >= 0);
    DOCTEST_REQUIRE(found.scores[i] == (i % 8'000 < 4'096 ? 4.0F : 0.0F));
  }
}

DOCTEST_TEST_CASE("equal scores come in the order of the rows, however the work is split") {
  auto problem = make_problem(30'000, 4, 3, 5'000);
  for (std::size_t i = 0; i < problem.keys.size(); ++i)  // a few different keys
    store::to_half(
        std::vector<float>{static_cast<float>(i / 4 % 7)}.data(), std::span(&problem.keys[i], 1));
  for (const std::int64_t n : {1, 3, 70}) {
    problem.queries.assign(static_cast<std::size_t>(n * 4), 1.0F);
    const auto one = search(problem, Metric::ip, 1), three = search(problem, Metric::ip, 3);
    DOCTEST_CHECK(one.ids == three.ids);
    for (std::size_t i = 1; i < 5'000; ++i)
      if (one.scores[i] == one.scores[i - 1]) DOCTEST_REQUIRE(one.ids[i] > one.ids[i - 1]);
    std::vector<std::int64_t> expected;
    for (const std::int64_t rest : {6, 5})
      for (std::int64_t row = rest; row < 30'000; row += 7) expected.push_back(row);
    expected.resize(5'000);
    DOCTEST_CHECK(std::equal(expected.begin(), expected.end(), one.ids.begin()));
  }
}

DOCTEST_TEST_CASE("what a query finds does not depend on the queries beside it, to the last bit") {
  const auto all = make_problem(700, 40, 75, 20);
  for (const Metric metric : {Metric::ip, Metric::l2}) {
    const auto together = search(all, metric, 1);
    for (const std::int64_t n : {1, 3, 5, 20, 40}) {
      auto some = all;
      some.queries.resize(static_cast<std::size_t>(n * all.width));
      const auto found = search(some, metric, 1);
      DOCTEST_CAPTURE(n);
      DOCTEST_CHECK(std::equal(found.ids.begin(), found.ids.end(), together.ids.begin()));
      DOCTEST_CHECK(std::equal(found.scores.begin(), found.scores.end(), together.scores.begin()));
    }
  }
}

DOCTEST_TEST_CASE("halves: every value goes there and back; floats round to the nearest") {
  for (std::uint32_t bits = 0; bits < 65'536; ++bits) {
    const auto half = static_cast<Half>(bits);
    float value = 0;
    store::to_float(&half, std::span(&value, 1));
    Half back = 0;
    store::to_half(&value, std::span(&back, 1));
    if (value == value) DOCTEST_REQUIRE(back == half);
    // Vector conversion and single conversions agree.
    const std::vector<Half> many(32, half);
    std::vector<float> values(32);
    store::to_float(many.data(), values);
    if (value == value)
      for (const float x : values) DOCTEST_REQUIRE(x == value);
  }
  struct Case {
    float value;
    Half half;
  };
  for (const Case& c : {Case{1.0F, 0x3c00}, Case{-2.0F, 0xc000}, Case{65504.0F, 0x7bff},
           Case{65519.0F, 0x7bff}, Case{65520.0F, 0x7c00}, Case{1e10F, 0x7c00},
           Case{0x1p-24F, 0x0001}, Case{0x1p-25F, 0x0000}, Case{0x1.8p-25F, 0x0001},
           Case{1.0F + 0x1p-11F, 0x3c00}, Case{1.0F + 0x1.8p-10F, 0x3c02}}) {
    std::vector<Half> eight(8);
    store::to_half(std::vector<float>(8, c.value).data(), eight);
    Half one = 0;
    store::to_half(&c.value, std::span(&one, 1));
    DOCTEST_CHECK(one == c.half);
    for (const Half half : eight) DOCTEST_CHECK(half == c.half);
  }
}
