// Contextual memories of bounded size, compared with a plain list of pairs, and in a mosaic.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "core/error.h"
#include "nn/kernels/bounded_slots_kernels.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;

constexpr std::int64_t kSlotWidth = 3;
using Row = std::vector<double>;  // (kSlotWidth)

struct Pair {
  Row key, value;
  std::size_t attended;  // the number of the newest pair at that time
};

/// Returns y of each step. Pairs are in order of arrival, the oldest first.
std::vector<Row> plain(const std::vector<Row>& queries, const std::vector<Row>& keys,
    const std::vector<Row>& values, std::size_t slots, bool lru) {
  std::vector<Pair> held;
  std::vector<Row> all;
  for (std::size_t t = 0; t < queries.size(); ++t) {
    if (held.size() == slots) {
      std::size_t goes = 0;
      for (std::size_t s = 1; lru && s < held.size(); ++s)
        if (held[s].attended < held[goes].attended) goes = s;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(goes));
    }
    held.push_back({keys[t], values[t], t});
    std::vector<double> weights;
    double sum = 0;
    for (const auto& pair : held) {
      double score = 0;
      for (std::size_t c = 0; c < kSlotWidth; ++c) score += queries[t][c] * pair.key[c];
      weights.push_back(std::exp(score));
      sum += weights.back();
    }
    Row y(kSlotWidth, 0.0);
    for (std::size_t s = 0; s < held.size(); ++s) {
      for (std::size_t c = 0; c < kSlotWidth; ++c) y[c] += weights[s] / sum * held[s].value[c];
      if (weights[s] / sum > 1 / static_cast<double>(held.size())) held[s].attended = t;
    }
    all.push_back(y);
  }
  return all;
}

std::vector<Row> random_rows(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Row> rows(n, Row(kSlotWidth));
  for (auto& row : rows)
    for (auto& x : row) x = normal(random);
  return rows;
}

Row flat(const std::vector<Row>& rows) {
  Row all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

std::shared_ptr<nn::Model> mosaic(std::int64_t slots, bool lru) {
  auto options = properties::small_options("mosaic");
  options.mosaic.persistent_slots = 5;
  auto model = properties::strong_model(options);
  model->architecture->bound_slots({slots, lru});
  return model;
}

}  // namespace

DOCTEST_TEST_CASE("slots give what a plain list of pairs gives, the oldest or the idlest going") {
  constexpr std::size_t kSteps = 60;
  const auto q = random_rows(kSteps, 1), k = random_rows(kSteps, 2), v = random_rows(kSteps, 3);
  const auto queries = flat(q), keys = flat(k), values = flat(v);
  std::array<bool, kSteps> pairs{};
  pairs.fill(true);
  double apart = 0;
  for (const std::size_t slots : {1, 4, 7, 60}) {
    for (const bool lru : {false, true}) {
      DOCTEST_CAPTURE(slots);
      DOCTEST_CAPTURE(lru);
      const nn::SlotShape shape{static_cast<std::int64_t>(slots), kSlotWidth, kSlotWidth, lru};
      Row held_keys(slots * kSlotWidth), held_values(slots * kSlotWidth), y(kSteps * kSlotWidth);
      std::vector<std::int64_t> born(slots), attended(slots);
      for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 25}, {25, kSteps}})
        nn::read_slots<double>(shape, static_cast<std::int64_t>(end - begin), pairs.data(),
            queries.data() + begin * kSlotWidth, keys.data() + begin * kSlotWidth,
            values.data() + begin * kSlotWidth, held_keys.data(), held_values.data(),
            {born.data(), attended.data()}, y.data() + begin * kSlotWidth);
      const auto expected = flat(plain(q, k, v, slots, lru));
      const auto other = flat(plain(q, k, v, slots, !lru));
      for (std::size_t i = 0; i < y.size(); ++i) {
        DOCTEST_CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
        apart = std::max(apart, std::abs(other[i] - expected[i]));
      }
    }
  }
  DOCTEST_CHECK(apart > .1);  // the two ways to evict differ
}

DOCTEST_TEST_CASE("a mosaic of enough slots is one without a bound, of fewer it is another") {
  const torch::NoGradGuard no_grad;
  const std::vector<properties::Ids> rows = {random_ids(12, 4), random_ids(12, 5)};
  const auto whole = mosaic(0, false)->architecture->forward(batch_of(rows), nullptr);
  for (const bool lru : {false, true}) {
    const auto enough = mosaic(11, lru)->architecture->forward(batch_of(rows), nullptr);
    const auto fewer = mosaic(4, lru)->architecture->forward(batch_of(rows), nullptr);
    for (std::int64_t r = 0; r < 2; ++r) {
      DOCTEST_CHECK(properties::difference(whole, r, 0, enough, r, 0, 12) < 1e-12);
      DOCTEST_CHECK(properties::difference(whole, r, 0, fewer, r, 0, 5) < 1e-12);
      DOCTEST_CHECK(properties::difference(whole, r, 5, fewer, r, 5, 7) > 1e-3);
    }
  }
}

DOCTEST_TEST_CASE("a bounded mosaic streams, is causal and blind to padding and other rows") {
  for (const bool lru : {false, true}) {
    const auto model = mosaic(3, lru);
    properties::check_causality(*model);
    properties::check_streaming(*model);
    properties::check_padding(*model);
    properties::check_rows(*model);
  }
}

DOCTEST_TEST_CASE("the State of a bounded mosaic does not grow") {
  const torch::NoGradGuard no_grad;
  const auto model = mosaic(8, true);
  DOCTEST_CHECK((model->architecture->carry() == nn::Carry::constant));
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  const auto bytes = state.bytes();
  for (int i = 0; i < 5; ++i)
    model->architecture->forward(batch_of({random_ids(50, 2)}, false), &state);
  DOCTEST_CHECK(state.bytes() == bytes);
}

DOCTEST_TEST_CASE("other architectures refuse --context-slots, a mosaic --layer-memory") {
  for (const auto* const arch : {"transformer", "transformer-xl", "lstm", "srupp"}) {
    const auto model = properties::strong_model(properties::small_options(arch));
    DOCTEST_CHECK_THROWS_AS(model->architecture->bound_slots({4, false}), core::Error);
  }
  DOCTEST_CHECK_THROWS_AS(mosaic(3, false)->architecture->set_reach({"4", -1, ""}), core::Error);
}
