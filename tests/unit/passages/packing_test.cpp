// Orders of units.

#include "passages/pack_data.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "passages/bm25_index.h"
#include "unit/passages/term_lists_sample.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace {

passages::Hits all_hits(const passages::Bm25& bm25, std::uint32_t top) {
  std::vector<std::uint32_t> queries(bm25.lists().size());
  std::iota(queries.begin(), queries.end(), 0u);
  return passages::search(bm25, queries, {top, 1, 1 << 30}, [](std::uint64_t) {});
}

bool is_permutation(const passages::UnitOrder& order, std::uint32_t n) {
  return order.size() == n && std::set<std::uint32_t>(order.begin(), order.end()).size() == n &&
         (n == 0 || *std::ranges::max_element(order) == n - 1);
}

// The paper's algorithm 1, with sets.
passages::UnitOrder plain_chain(const passages::Hits& hits, std::uint64_t seed) {
  auto waiting = passages::random_order(hits.queries(), seed);
  passages::UnitOrder order;
  while (!waiting.empty()) {
    std::uint32_t next = waiting.front();
    if (!order.empty())
      for (const auto& hit : hits.of(order.back()))
        if (std::ranges::count(waiting, hit.unit) > 0) {
          next = hit.unit;
          break;
        }
    order.push_back(next);
    std::erase(waiting, next);
  }
  return order;
}

// Texts in families: members share words.
sample::Lists families(std::uint32_t units, std::uint32_t size, std::uint64_t seed) {
  core::Rng rng(seed);
  sample::Lists lists;
  for (std::uint32_t unit = 0; unit < units; ++unit) {
    std::set<std::uint32_t> terms;
    for (int i = 0; i < 5; ++i) terms.insert(static_cast<std::uint32_t>(rng.below(50)));
    for (int i = 0; i < 5; ++i)
      terms.insert(50 + unit / size * 10 + static_cast<std::uint32_t>(rng.below(10)));
    auto& list = lists.emplace_back();
    for (const auto term : terms)
      list.push_back({term, 1 + static_cast<std::uint32_t>(rng.below(3))});
  }
  return lists;
}

}  // namespace

DOCTEST_TEST_CASE("the greedy chain is the paper's, for any hits and seed") {
  DOCTEST_CHECK(rc::check([] {
    const auto units = *rc::gen::inRange<std::uint32_t>(0, 80);
    const auto seed = *rc::gen::arbitrary<unsigned>();
    const auto lists = sample::term_lists(sample::random_lists(units, 40, 20, seed));
    const auto hits = all_hits(passages::Bm25(lists, {}), *rc::gen::inRange<std::uint32_t>(1, 8));
    const auto order = passages::greedy_chain(hits, seed);
    RC_ASSERT(is_permutation(order, units));
    RC_ASSERT(order == plain_chain(hits, seed));
  }));
}

DOCTEST_TEST_CASE("random orders are permutations that depend on the seed") {
  DOCTEST_CHECK(is_permutation(passages::random_order(1000, 1), 1000));
  DOCTEST_CHECK(passages::random_order(1000, 1) == passages::random_order(1000, 1));
  DOCTEST_CHECK(passages::random_order(1000, 1) != passages::random_order(1000, 2));
}

DOCTEST_TEST_CASE("the graph of hits has each edge once, with the mean of both scores") {
  const auto lists = sample::term_lists(families(60, 6, 3));
  const passages::Bm25 bm25(lists, {});
  const auto hits = all_hits(bm25, 5);
  const passages::HitGraph graph(bm25, hits, 2);
  std::size_t edges = 0;
  for (std::uint32_t a = 0; a < 60; ++a)
    for (std::uint32_t b = a + 1; b < 60; ++b) {
      const auto has = [&](std::uint32_t x, std::uint32_t y) {
        return std::ranges::any_of(hits.of(x), [&](const auto& hit) { return hit.unit == y; });
      };
      const bool edge = has(a, b) || has(b, a);
      edges += edge;
      const double weight = edge ? (bm25.score(a, b) + bm25.score(b, a)) / 2 : 0;
      DOCTEST_CHECK(graph.weight(a, b) == doctest::Approx(weight).epsilon(1e-5));
      DOCTEST_CHECK(graph.weight(b, a) == graph.weight(a, b));
    }
  DOCTEST_CHECK(graph.edges().size() == edges);
}

DOCTEST_TEST_CASE("a path cover is a permutation that no exchange of two edges makes heavier") {
  DOCTEST_CHECK(rc::check([] {
    const auto units = *rc::gen::inRange<std::uint32_t>(0, 90);
    const auto lists = sample::term_lists(
        families(units, *rc::gen::inRange<std::uint32_t>(1, 12), *rc::gen::arbitrary<unsigned>()));
    const passages::Bm25 bm25(lists, {});
    const auto hits = all_hits(bm25, 4);
    const passages::HitGraph graph(bm25, hits, 1);
    const auto order = passages::path_cover(bm25, hits, 1);
    RC_ASSERT(is_permutation(order, units));
    RC_ASSERT(order == passages::path_cover(bm25, hits, 3));
    for (std::uint32_t unit = 0; unit < units; ++unit)
      if (units < 8 || graph.neighbours(unit).size() > 12) return;
    const auto w = [&](std::size_t i, std::size_t j) {
      return graph.weight(order[i % units], order[j % units]);
    };
    for (std::size_t i = 0; i < units; ++i)
      for (std::size_t j = i + 2; j < units + (i > 0) - 1; ++j)
        RC_ASSERT(w(i, j) + w(i + 1, j + 1) <= w(i, i + 1) + w(j, j + 1) + 2e-3f);
  }));
}

DOCTEST_TEST_CASE("a path cover keeps families together and beats the greedy chain") {
  const auto lists = sample::term_lists(families(2000, 10, 5));
  const passages::Bm25 bm25(lists, {});
  const auto hits = all_hits(bm25, 8);
  const auto greedy = passages::worth_of(passages::greedy_chain(hits, 1), bm25, hits),
             cover = passages::worth_of(passages::path_cover(bm25, hits, 1), bm25, hits),
             random = passages::worth_of(passages::random_order(2000, 1), bm25, hits);
  DOCTEST_CHECK(cover.links + cover.jumps == 1999);
  DOCTEST_CHECK(cover.jumps < greedy.jumps);
  DOCTEST_CHECK(cover.mean_score > greedy.mean_score);
  DOCTEST_CHECK(greedy.mean_score > 2 * random.mean_score);
}

DOCTEST_TEST_CASE("what an order is worth") {
  // 0 and 1 share a term, 2 and 3 another; 1 and 2 share none.
  const auto lists = sample::term_lists({{{0, 1}}, {{0, 2}}, {{1, 1}}, {{1, 1}, {2, 3}}});
  const passages::Bm25 bm25(lists, {});
  const auto hits = all_hits(bm25, 2);
  const auto worth = passages::worth_of({0, 1, 2, 3}, bm25, hits);
  DOCTEST_CHECK(worth.links == 2);
  DOCTEST_CHECK(worth.jumps == 1);
  DOCTEST_CHECK(worth.mean_score == doctest::Approx((bm25.score(0, 1) + bm25.score(2, 3)) / 3));
}
