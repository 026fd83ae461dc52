// Visibility of entries, element by element, and the mass of every token.
#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"
#include "nn/base/torch.h"
#include "nn/memory/memory_block.h"
#include "plain_sees.h"

namespace {

using torch::Tensor;

Tensor ids(std::vector<std::int64_t> values) { return torch::tensor(values, torch::kInt64); }

// Two runs of two segments of three tokens, then padding: positions 0..12.
nn::TokenPositions two_runs() {
  return {ids({0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, -1}),
      ids({0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0}),
      ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})};
}

// What query 4 (run 0, segment 1, its second token) sees of the thirteen entries, as in the papers.
struct SeenRow {
  const char* rule;
  bool dropped;
  std::int64_t reach;
  std::vector<int> seen;
};

}  // namespace

DOCTEST_TEST_CASE("truth table of the memory rules") {
  const std::vector<SeenRow> rows = {
      {"none", false, 0, {}},
      {"local", false, 0, {3}},
      {"local", true, 0, {}},
      {"long", false, 0, {0, 1, 2, 3}},
      {"long", true, 0, {0, 1, 2}},
      {"long", false, 2, {2, 3}},
      {"ext", false, 0, {6, 7, 8, 9, 10, 11}},
      {"ext", true, 0, {6, 7, 8, 9, 10, 11}},
      {"local,long", false, 2, {2, 3}},
      {"local,long", false, 1, {3}},
      {"local,ext", false, 0, {3, 6, 7, 8, 9, 10, 11}},
      {"local,ext", true, 0, {6, 7, 8, 9, 10, 11}},
      {"local,long,ext", false, 0, {0, 1, 2, 3, 6, 7, 8, 9, 10, 11}},
  };
  const nn::TokenPositions place = two_runs();
  for (const auto& row : rows) {
    DOCTEST_CAPTURE(row.rule);
    DOCTEST_CAPTURE(row.dropped);
    nn::MemoryRule rule = nn::MemoryRule::parse(row.rule);
    rule.drop_own_segment = row.dropped;
    rule.reach = row.reach;
    const Tensor seen = nn::visibility(place, place, rule)[4];
    Tensor expected = torch::zeros({13}, torch::kBool);
    for (const int j : row.seen) expected[j] = true;
    DOCTEST_CHECK(torch::equal(seen, expected));
  }
}

DOCTEST_TEST_CASE(
    "visibility is the truth table for every pair, and spans leave nothing visible out") {
  const nn::TokenPositions place = two_runs();
  const auto at = [&](std::int64_t i) {
    const auto id = [i](const Tensor& t) { return t[i].item<std::int64_t>(); };
    return nn::TokenPosition{id(place.run), id(place.segment), id(place.position)};
  };
  for (const char* names : {"none", "local", "long", "ext", "local,ext", "long,ext"}) {
    for (const bool drop : {false, true}) {
      for (const std::int64_t reach : {0, 2}) {
        nn::MemoryRule rule = nn::MemoryRule::parse(names);
        rule.drop_own_segment = drop, rule.reach = reach;
        const Tensor seen = nn::visibility(place, place, rule);
        for (std::int64_t i = 0; i < 13; ++i) {
          const auto spans = nn::visible_spans(place.slice(i, i + 1), place, rule, 2);
          for (std::int64_t j = 0; j < 13; ++j) {
            const bool truth = plain::sees(rule, at(i), at(j));
            DOCTEST_CHECK(seen[i][j].item<bool>() == truth);
            const bool spanned = std::any_of(spans.begin(), spans.end(),
                [&](const auto& s) { return s.first <= j && j < s.second; });
            DOCTEST_CHECK((spanned || !truth));
          }
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("a local memory walks its own segment only") {
  const std::int64_t segments = 8, length = 256;
  nn::TokenPositions place{torch::arange(segments).repeat_interleave(length),
      torch::arange(segments).repeat_interleave(length), torch::arange(segments * length)};
  const auto spans =
      nn::visible_spans(place.slice(512, 768), place, nn::MemoryRule::parse("local"));
  DOCTEST_REQUIRE(spans.size() == 1);
  DOCTEST_CHECK(spans[0].first == 512);
  DOCTEST_CHECK(spans[0].second == 768);
}

DOCTEST_TEST_CASE("masses of every word agree with the masses of single targets") {
  torch::manual_seed(6);
  const nn::TokenPositions place = two_runs();
  const std::int64_t vocabulary = 4;
  const Tensor keys = torch::randn({13, 6}, torch::kFloat64),
               labels = torch::randint(vocabulary, {13}, torch::kInt64);
  const nn::Entries entries{keys, labels, place};
  for (const char* names : {"local", "long", "ext", "local,ext"}) {
    const nn::MemoryRule rule = nn::MemoryRule::parse(names);
    const Tensor masses = nn::memory_log_masses(keys, place, entries, rule, vocabulary);
    for (std::int64_t w = 0; w < vocabulary; ++w) {
      const nn::MemoryBlock block(keys, place, torch::full({13}, w, torch::kInt64), entries, rule);
      DOCTEST_CHECK(torch::allclose(masses.select(1, w), block.positive, 1e-12, 1e-12));
      DOCTEST_CHECK(torch::allclose(masses.logsumexp(1), block.all, 1e-12, 1e-12));
    }
  }
}

DOCTEST_TEST_CASE("names of memories") {
  DOCTEST_CHECK(nn::MemoryRule::parse("none").name() == "none");
  DOCTEST_CHECK(nn::MemoryRule::parse("ext,local").name() == "local,ext");
  for (const char* bad : {"", "locals", "local,", "local;long", "none,local"})
    DOCTEST_CHECK_THROWS_AS(nn::MemoryRule::parse(bad), core::Error);
}
