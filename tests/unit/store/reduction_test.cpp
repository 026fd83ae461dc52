// Greedy merging, compared with a plain version, and the resulting store.
#include "store/reduction.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "store/datastore.h"
#include "store/merge.h"
#include "store/removal.h"
#include "store_folder.h"

namespace {

// Row by row, with the nearest other rows by all distances.
std::vector<std::int32_t> plainly_merged(
    const std::vector<float>& keys, const std::vector<std::int32_t>& labels, std::size_t k) {
  const std::size_t n = labels.size(), width = keys.size() / n;
  std::vector<std::int32_t> weights(n, 1);
  for (std::size_t row = 0; row < n; ++row) {
    if (weights[row] == 0) continue;
    std::vector<double> distance(n);
    for (std::size_t other = 0; other < n; ++other)
      for (std::size_t j = 0; j < width; ++j)
        distance[other] += std::pow(keys[row * width + j] - keys[other * width + j], 2.0);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase(order, row);
    std::stable_sort(
        order.begin(), order.end(), [&](auto a, auto b) { return distance[a] < distance[b]; });
    for (std::size_t i = 0; i < std::min(k, order.size()); ++i) {
      const std::size_t other = order[i];
      if (labels[other] != labels[row] || weights[other] != 1) continue;
      ++weights[row], weights[other] = 0;
    }
  }
  return weights;
}

// Few labels, so that neighbours share them.
StoreRows some_rows(std::size_t n) {
  auto rows = random_rows(n, 11);
  for (auto& label : rows.labels) label %= 3;
  std::vector<store::Half> halves(rows.keys.size());
  store::to_half(rows.keys.data(), halves);
  store::to_float(halves.data(), rows.keys);
  return rows;
}

}  // namespace

DOCTEST_TEST_CASE("merging takes up what the plain loop takes up, every entry once") {
  const auto rows = some_rows(700);
  std::vector<store::Half> keys(rows.keys.size());
  store::to_half(rows.keys.data(), keys);
  for (const std::size_t k : {1, 5, 40}) {
    const auto weights = store::merged_weights(keys, kStoreWidth, rows.labels, k);
    DOCTEST_CHECK((weights == plainly_merged(rows.keys, rows.labels, k)));
    DOCTEST_CHECK(std::accumulate(weights.begin(), weights.end(), 0) == 700);
  }
}

DOCTEST_TEST_CASE("a merged store has the rows that stay, their weights, places and documents") {
  const auto rows = some_rows(700);
  const std::vector<std::int64_t> documents{0, 100, 100, 450};
  const auto weights = plainly_merged(rows.keys, rows.labels, 5);
  for (const std::uint64_t pca : {0, 8}) {
    const StoreFolder folder;
    auto plan = make_plan();
    plan.reduction.merge_neighbours = 5;
    plan.reduction.pca = pca;
    const auto manifest = build_store(folder.path, plan, rows, documents);
    DOCTEST_CHECK(manifest.weighted());
    DOCTEST_CHECK_FALSE(manifest.whole());
    store::verify(folder.path);
    const store::Datastore opened(folder.path);
    std::int64_t sum = 0;
    for (std::int32_t weight : opened.weights()) sum += weight;
    DOCTEST_CHECK(sum == 700);
    DOCTEST_CHECK(opened.labels()[0] == rows.labels[static_cast<std::size_t>(opened.places()[0])]);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      std::int64_t before = 0;
      for (const std::int64_t place : opened.places()) before += place < documents[i] ? 1 : 0;
      DOCTEST_CHECK(opened.documents()[i] == before);
    }
    if (pca > 0) continue;
    std::size_t at = 0;
    for (std::size_t row = 0; row < 700; ++row) {
      if (weights[row] == 0) continue;
      DOCTEST_CHECK(opened.places()[at] == static_cast<std::int64_t>(row));
      DOCTEST_CHECK(opened.weights()[at++] == weights[row]);
    }
    DOCTEST_CHECK(at == opened.weights().size());
    const auto hits = opened.search({rows.keys.data(), kStoreWidth}, {.k = 3});
    for (std::size_t i = 0; i < 3; ++i)
      DOCTEST_CHECK(hits.weights[i] == opened.weights()[static_cast<std::size_t>(hits.ids[i])]);
    // Commands that would count rows of others, or no rows, are refused.
    DOCTEST_CHECK_THROWS_AS(store::Removal(folder.path, {{1}}), core::Error);
    DOCTEST_CHECK_THROWS_AS(
        build_store(folder.path, make_plan("exact", "more"), rows, {0}, true), core::Error);
  }
}
