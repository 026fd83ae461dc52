// An entry that represents several gives the results of that number of entries.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "infer/stores/neighbours.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 5, kFound = 7, kVocabulary = 4;

// Scores, labels and weights of the neighbours; the last row has only two.
struct Found {
  infer::Neighbours weighted, repeated;
  Tensor weights;
};

Found found() {
  torch::manual_seed(3);
  Found all;
  auto& one = all.weighted;
  one.scores = torch::randn({kRows, kFound}) * 20;
  one.labels = torch::randint(kVocabulary, {kRows, kFound}, torch::kInt64);
  all.weights = torch::randint(1, 9, {kRows, kFound}, torch::kInt64);
  one.scores[kRows - 1].slice(0, 2).fill_(-std::numeric_limits<float>::infinity());
  one.labels[kRows - 1].slice(0, 2).fill_(-1);
  all.weights[kRows - 1].slice(0, 2).fill_(1);
  one.rows = torch::arange(kRows * kFound).view({kRows, kFound});
  one.stores = torch::zeros_like(one.rows);
  one.log_weights = all.weights.to(torch::kFloat32).log();
  // Repeats each entry nine times, and removes copies beyond its weight.
  auto& many = all.repeated;
  many = {one.scores.repeat({1, 9}), one.labels.repeat({1, 9}), one.rows.repeat({1, 9}),
      one.stores.repeat({1, 9})};
  for (std::int64_t copy = 1; copy < 9; ++copy) {
    const Tensor beyond = all.weights <= copy;
    many.scores.slice(1, copy * kFound, (copy + 1) * kFound)
        .masked_fill_(beyond, -std::numeric_limits<float>::infinity());
    many.labels.slice(1, copy * kFound, (copy + 1) * kFound).masked_fill_(beyond, -1);
  }
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("an entry's weight counts its kernel so often, in sums and of every word") {
  const Found all = found();
  const Tensor targets = torch::tensor({0, 1, 2, 3, 0}, torch::kInt64);
  const std::array<double, 2> divisors{0.7, 11};
  const auto one = infer::store_masses(all.weighted, targets, divisors);
  const auto many = infer::store_masses(all.repeated, targets, divisors);
  DOCTEST_CHECK(torch::allclose(one.all, many.all, 1e-5, 1e-5));
  DOCTEST_CHECK(torch::allclose(one.positive, many.positive, 1e-5, 1e-5));
  for (std::size_t d = 0; d < divisors.size(); ++d) {
    const Tensor words = infer::store_token_masses(all.weighted, divisors[d], kVocabulary);
    DOCTEST_CHECK(torch::allclose(
        words, infer::store_token_masses(all.repeated, divisors[d], kVocabulary), 1e-5, 1e-5));
    // The formula gives the same: log of the sum of weight times exp(score / divisor).
    for (std::int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < kFound; ++i)
        sum += static_cast<double>(all.weights[row][i].item<std::int64_t>()) *
               std::exp(all.weighted.scores[row][i].item<double>() / divisors[d]);
      DOCTEST_CHECK(one.all[static_cast<std::int64_t>(d)][row].item<double>() ==
                    doctest::Approx(std::log(sum)).epsilon(1e-5));
    }
  }
}

DOCTEST_TEST_CASE("weights go with their entries where rows are taken") {
  const Found all = found();
  const auto some = all.weighted.slice(1, 3);
  DOCTEST_CHECK(torch::equal(some.log_weights, all.weighted.log_weights.slice(0, 1, 3)));
  DOCTEST_CHECK(torch::allclose(some.logits(2), some.scores / 2 + some.log_weights));
  DOCTEST_CHECK_FALSE(all.repeated.slice(0, 1).log_weights.defined());
  const Tensor chosen = torch::tensor({3, 0, 3}, torch::kInt64);
  const auto taken = all.weighted.select(chosen);
  DOCTEST_CHECK(torch::equal(taken.log_weights, all.weighted.log_weights.index_select(0, chosen)));
  DOCTEST_CHECK(torch::equal(taken.rows, all.weighted.rows.index_select(0, chosen)));
  DOCTEST_CHECK_FALSE(all.repeated.select(chosen).log_weights.defined());
}

DOCTEST_TEST_CASE("weights go with their entries where some rows were searched") {
  const Found all = found();
  const auto put = [](const infer::Neighbours& first, const infer::Neighbours& second) {
    auto some = infer::no_neighbours(kRows, kFound);
    infer::put_neighbours(some, torch::tensor({4, 1}, torch::kInt64), first);
    infer::put_neighbours(some, torch::tensor({2}, torch::kInt64), second);
    return some;
  };
  auto plain = all.weighted.slice(0, 2);
  plain.log_weights = Tensor();
  for (const bool weighted_first : {true, false}) {
    const auto some = weighted_first ? put(all.weighted.slice(0, 2), plain.slice(0, 1))
                                     : put(plain, all.weighted.slice(0, 1));
    DOCTEST_REQUIRE(some.log_weights.defined());
    const auto is = [&](std::int64_t row, const Tensor& expected) {
      DOCTEST_CHECK(torch::equal(some.log_weights[row], expected));
    };
    const Tensor none = torch::zeros({kFound});
    is(4, weighted_first ? all.weighted.log_weights[0] : none);
    is(1, weighted_first ? all.weighted.log_weights[1] : none);
    is(2, weighted_first ? none : all.weighted.log_weights[0]);
    is(0, none);
  }
  DOCTEST_CHECK_FALSE(put(plain, plain.slice(0, 1)).log_weights.defined());
}
