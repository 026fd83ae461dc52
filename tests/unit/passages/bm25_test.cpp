// BM25: the formula, and the search compared with a plain search.

#include "passages/bm25_index.h"
#include "unit/passages/term_lists_sample.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace {

using Ids = std::vector<std::uint32_t>;

// The formula in double.
struct Plain {
  explicit Plain(const sample::Lists& lists_, double k1_ = 0.9, double b_ = 0.4)
      : lists(lists_), k1(k1_), b(b_) {
    for (const auto& list : lists) average += length(list) / static_cast<double>(lists.size());
  }
  static double length(const std::vector<passages::TermCount>& list) {
    double sum = 0;
    for (const auto& entry : list) sum += entry.count;
    return sum;
  }
  static double count(const std::vector<passages::TermCount>& list, std::uint32_t term) {
    for (const auto& entry : list)
      if (entry.term == term) return entry.count;
    return 0;
  }
  double score(std::uint32_t query, std::uint32_t unit) const {
    double sum = 0;
    for (const auto& [term, times] : lists[query]) {
      double with = 0;
      for (const auto& list : lists) with += count(list, term) > 0;
      const double f = count(lists[unit], term),
                   idf = std::log(
                       1 + (static_cast<double>(lists.size()) - with + 0.5) / (with + 0.5));
      if (f > 0) sum += times * idf * f / (f + k1 * (1 - b + b * length(lists[unit]) / average));
    }
    return sum;
  }
  const sample::Lists& lists;
  double k1, b, average = 0;
};

Ids all_of(std::uint32_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

passages::Hits search(const passages::Bm25& bm25, const Ids& queries, std::uint32_t top, int jobs,
    std::uint64_t memory, std::uint32_t* parts = nullptr) {
  return passages::search(
      bm25, queries, {top, jobs, memory}, [](std::uint64_t) {}, parts);
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)); }

}  // namespace

DOCTEST_TEST_CASE("a score by hand") {
  // Units: "a a b", "a c", "c"; length 2 on average; a is in two of three.
  const auto lists = sample::term_lists({{{0, 2}, {1, 1}}, {{0, 1}, {2, 1}}, {{2, 1}}});
  const passages::Bm25 bm25(lists, {0.9, 0.4});
  DOCTEST_CHECK(bm25.score(0, 1) ==
                doctest::Approx(2 * std::log(1 + 1.5 / 2.5) / (1 + 0.9 * (0.6 + 0.4 * 2 / 2.0))));
  DOCTEST_CHECK(bm25.score(1, 0) ==
                doctest::Approx(std::log(1 + 1.5 / 2.5) * 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2.0))));
  DOCTEST_CHECK(bm25.score(0, 2) == 0);
}

DOCTEST_TEST_CASE("scores and hits are those of a plain implementation") {
  DOCTEST_CHECK(rc::check([] {
    const auto units = *rc::gen::inRange<std::uint32_t>(1, 120);
    const auto terms = *rc::gen::inRange<std::uint32_t>(1, 60);
    const auto top = *rc::gen::inRange<std::uint32_t>(1, 30);
    const auto longest = *rc::gen::inRange<std::uint32_t>(0, 40);
    const double k1 = *rc::gen::element(0.0, 0.9, 2.0), b = *rc::gen::element(0.0, 0.4, 1.0);
    const auto raw = sample::random_lists(units, terms, longest, *rc::gen::arbitrary<unsigned>());
    const auto lists = sample::term_lists(raw);
    const passages::Bm25 bm25(lists, {k1, b});
    const Plain plain(raw, k1, b);
    const auto hits = search(bm25, all_of(units), top, 1, 1 << 30);
    for (std::uint32_t query = 0; query < units; ++query) {
      std::vector<double> scores;
      for (std::uint32_t unit = 0; unit < units; ++unit) {
        scores.push_back(plain.score(query, unit));
        RC_ASSERT(near(bm25.score(query, unit), scores.back()));
      }
      const auto found = hits.of(query);
      std::vector<bool> is_hit(units);
      for (const auto& hit : found) {
        RC_ASSERT(near(hit.score, scores[hit.unit]));
        RC_ASSERT(!is_hit[hit.unit]);
        is_hit[hit.unit] = true;
      }
      RC_ASSERT(std::is_sorted(found.begin(), found.end()));
      const auto matching = std::ranges::count_if(scores, [](double s) { return s > 0; });
      RC_ASSERT(found.size() == std::min<std::size_t>(top, static_cast<std::size_t>(matching)));
      // No unit that was left out is better than one that was found.
      for (std::uint32_t unit = 0; unit < units && !found.empty(); ++unit)
        RC_ASSERT(is_hit[unit] || scores[unit] <= 0 || scores[unit] < found.back().score + 1e-4);
    }
  }));
}

DOCTEST_TEST_CASE("units that are no answer leave their places to the next best") {
  DOCTEST_CHECK(rc::check([] {
    const auto units = *rc::gen::inRange<std::uint32_t>(1, 120);
    const auto top = *rc::gen::inRange<std::uint32_t>(1, 30);
    const auto lists =
        sample::term_lists(sample::random_lists(units, 30, 20, *rc::gen::arbitrary<unsigned>()));
    const passages::Bm25 bm25(lists, {});
    std::vector<passages::UnitRange> without;
    for (std::uint32_t unit = 0; unit < units; ++unit) {
      const auto begin = *rc::gen::inRange<std::uint32_t>(0, units);
      without.push_back({begin, *rc::gen::inRange<std::uint32_t>(begin, units + 1)});
    }
    passages::SearchOptions how;
    how.top = units;
    const auto all = passages::search(bm25, all_of(units), how, [](std::uint64_t) {});
    how.top = top, how.without = without;
    const auto hits = passages::search(bm25, all_of(units), how, [](std::uint64_t) {});
    for (std::uint32_t query = 0; query < units; ++query) {
      std::vector<passages::Hit> expected;
      for (const auto& hit : all.of(query))
        if ((hit.unit < without[query].begin || hit.unit >= without[query].end) &&
            expected.size() < top)
          expected.push_back(hit);
      RC_ASSERT(std::ranges::equal(hits.of(query), expected));
    }
  }));
}

DOCTEST_TEST_CASE("many blocks, parts and threads: the same hits to the last bit") {
  const std::uint32_t n = 20000;
  const auto raw = sample::random_lists(n, 400, 12, 7);
  const auto lists = sample::term_lists(raw), on_disk = sample::term_lists(raw, 100);
  DOCTEST_CHECK(on_disk.spilled());
  const passages::Bm25 bm25(lists, {}), bm25_on_disk(on_disk, {});
  Ids queries;
  for (std::uint32_t i = 0; i < 300; ++i) queries.push_back(i * 61);
  std::uint32_t parts = 0;
  const auto whole = search(bm25, queries, 20, 1, std::uint64_t{1} << 40, &parts);
  DOCTEST_CHECK(parts == 1);
  const auto cut = search(bm25_on_disk, queries, 20, 3, 1, &parts);
  DOCTEST_CHECK(parts == 2);
  std::size_t different = 0;
  for (std::uint32_t q = 0; q < queries.size(); ++q) {
    const auto a = whole.of(q), b = cut.of(q);
    different += !std::ranges::equal(a, b);
    // The best units by the scores of all pairs, in any block.
    std::vector<passages::Hit> all;
    for (std::uint32_t unit = 0; unit < n; ++unit) {
      const auto score = static_cast<float>(bm25.score(queries[q], unit));
      if (score > 0) all.push_back({unit, score});
    }
    std::sort(all.begin(), all.end());
    all.resize(std::min<std::size_t>(all.size(), 20));
    DOCTEST_REQUIRE(a.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      DOCTEST_REQUIRE(a[i].score == doctest::Approx(all[i].score).epsilon(1e-5));
  }
  DOCTEST_CHECK(different == 0);
}
