// What --plan says of the memory of several processes, against sums by hand.

#include "train/plan.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

using train::Sharded;

// Two blocks of 300,000 numbers, an embedding of 200,000 and a norm of 10.
struct Shape {
  train::NamedWeights weights = {{"wte.weight", torch::zeros({1000, 200})},
      {"h.0.weight", torch::zeros({500, 600})}, {"h.1.weight", torch::zeros({500, 600})},
      {"ln_f.weight", torch::zeros({10})}};
  std::vector<std::vector<torch::Tensor>> blocks = {{weights[1].second}, {weights[2].second}};
};

train::RankBytes bytes_of(Sharded sharded, const train::StepShape& step, std::int64_t ranks = 2) {
  const Shape shape;
  return train::rank_bytes(shape.weights, shape.blocks, {}, step, ranks, sharded);
}

}  // namespace

DOCTEST_TEST_CASE("memory of a process: what it keeps of weights, gradients and moments") {
  constexpr std::int64_t kAll = 4 * 800'010;
  const train::StepShape step{2, ranks::Sum::tree, false};
  const auto none = bytes_of(Sharded::none, step), optimiser = bytes_of(Sharded::optimiser, step),
             gradients = bytes_of(Sharded::gradients, step),
             weights = bytes_of(Sharded::weights, step);
  DOCTEST_CHECK(none.weights == kAll);
  DOCTEST_CHECK(none.gradients == 5 * kAll / 2);  // the gradient, a bucket of all, half received
  DOCTEST_CHECK(none.optimiser == 2 * kAll);
  DOCTEST_CHECK(optimiser.weights == kAll);
  DOCTEST_CHECK(optimiser.gradients == none.gradients);
  // Cut at multiples of 32,768 numbers: the larger piece of 200,000 is 101,696, of 300,000 one of
  // 163,840 or 136,160.
  DOCTEST_CHECK(optimiser.optimiser >= kAll);
  DOCTEST_CHECK(optimiser.optimiser <= kAll + 8 * 3 * train::kNormBlock);
  DOCTEST_CHECK(gradients.optimiser == optimiser.optimiser);
  DOCTEST_CHECK(gradients.weights == kAll);
  // All are one bucket: its gradient, what is sent, and the sum of the own pieces.
  DOCTEST_CHECK(gradients.gradients == 2 * kAll + optimiser.optimiser / 2);
  // The embedding and the norm, two blocks, and pieces of blocks.
  DOCTEST_CHECK(weights.weights <= 4 * (200'010 + 600'000 + 300'000 + 2 * train::kNormBlock));
  DOCTEST_CHECK(weights.weights >= 4 * (200'010 + 600'000 + 300'000));
  DOCTEST_CHECK(weights.optimiser == optimiser.optimiser);
}

DOCTEST_TEST_CASE("memory of a process: sums that are kept, and whole gradients") {
  constexpr std::int64_t kAll = 4 * 800'010;
  const auto slice = bytes_of(Sharded::gradients, {2, ranks::Sum::tree, false}).optimiser / 2;
  const auto gradients = [](std::int64_t leaves, bool carries, Sharded sharded) {
    return bytes_of(sharded, {leaves, ranks::Sum::tree, carries}).gradients;
  };
  DOCTEST_CHECK(gradients(8, false, Sharded::none) == 7 * kAll / 2);
  DOCTEST_CHECK(gradients(8, false, Sharded::gradients) == 2 * kAll + 3 * slice);
  DOCTEST_CHECK(gradients(6, false, Sharded::gradients) == 2 * kAll + slice);  // three in turn
  DOCTEST_CHECK(gradients(8, true, Sharded::gradients) == (3 + 1) * kAll + slice);
}

DOCTEST_TEST_CASE("memory of a process: messages are buckets, and blocks if they are lent") {
  constexpr std::int64_t kNumbers = 7'000'000;  // of a weight: more than a bucket
  const train::NamedWeights weights = {{"h.0.weight", torch::empty({7, kNumbers / 7})},
      {"h.1.weight", torch::empty({7, kNumbers / 7})},
      {"h.2.weight", torch::empty({7, kNumbers / 7})}};
  std::vector<std::vector<torch::Tensor>> blocks;
  for (const auto& [name, weight] : weights) blocks.push_back({weight});
  const auto gradients = [&](Sharded sharded) {
    return train::rank_bytes(weights, blocks, {}, {2, ranks::Sum::tree, false}, 2, sharded)
        .gradients;
  };
  const auto own = [&](Sharded sharded) {
    return train::rank_bytes(weights, blocks, {}, {2, ranks::Sum::tree, false}, 2, sharded)
               .optimiser /
           2;
  };
  DOCTEST_CHECK(gradients(Sharded::none) == 4 * (3 * kNumbers + kNumbers + kNumbers / 2));
  DOCTEST_CHECK(gradients(Sharded::gradients) == own(Sharded::gradients) + 4 * 2 * kNumbers);
  DOCTEST_CHECK(gradients(Sharded::weights) == own(Sharded::weights) + 4 * 3 * kNumbers);
}

DOCTEST_TEST_CASE("the table of a plan: a row for each choice, without weights if none are lent") {
  const Shape shape;
  const train::StepShape step{8, ranks::Sum::tree, false};
  const auto all = train::shard_table(shape.weights, shape.blocks, {}, step);
  DOCTEST_CHECK(all.size() == 12);
  DOCTEST_CHECK(all[3]["shard"] == "weights");
  DOCTEST_CHECK(all[11]["ranks"] == 8);
  DOCTEST_CHECK(train::shard_table(shape.weights, {}, {}, step).size() == 9);
}
