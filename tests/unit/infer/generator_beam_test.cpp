// Beam search, compared with a search that keeps every hypothesis in a list.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "core/rng.h"
#include "infer/generate/generator_beam.h"

namespace {

using infer::Finish;
using infer::Hypothesis;
using Tokens = std::vector<std::int64_t>;

constexpr std::int64_t kWords = 5, kEnd = 0;
using Ends = std::set<std::int64_t>;  // tokens that end a text, as in a list eos_token_id
const Ends kOneEnd = {kEnd};
constexpr std::array kPenalties = {-1.0, 0.0, 0.6, 1.0, 2.0};

// A language model with unlimited context: log p of the next token after any tokens.
std::vector<float> row_after(const Tokens& tokens, std::uint64_t seed) {
  std::uint64_t hash = seed;
  for (const auto token : tokens) hash = hash * 1000003 + static_cast<std::uint64_t>(token) + 1;
  core::Rng rng(hash);
  std::vector<float> row;
  double total = 0;
  for (std::int64_t w = 0; w < kWords; ++w) {
    row.push_back(static_cast<float>(rng.normal()));
    total += std::exp(row.back());
  }
  for (auto& x : row) x -= static_cast<float>(std::log(total));
  return row;
}

double log_prob_of(const Tokens& tokens, std::uint64_t seed) {
  double sum = 0;
  Tokens before;
  for (const auto token : tokens) {
    sum += row_after(before, seed)[static_cast<std::size_t>(token)];
    before.push_back(token);
  }
  return sum;
}

double score(const Tokens& tokens, std::uint64_t seed, double penalty) {
  return log_prob_of(tokens, seed) / std::pow(static_cast<double>(tokens.size()), penalty);
}

// The definition of the search: at each step all extensions of all hypotheses are ranked.
std::vector<Tokens> plain_search(
    std::size_t width, double penalty, std::size_t most, std::uint64_t seed, const Ends& ends) {
  std::vector<Tokens> live{{}}, ended;
  for (std::size_t length = 1; length <= most && ended.size() < width && !live.empty(); ++length) {
    std::vector<Tokens> all;
    for (const auto& tokens : live) {
      for (std::int64_t w = 0; w < kWords; ++w) {
        all.push_back(tokens);
        all.back().push_back(w);
      }
    }
    std::stable_sort(all.begin(), all.end(),
        [&](const auto& a, const auto& b) { return log_prob_of(a, seed) > log_prob_of(b, seed); });
    live.clear();
    for (std::size_t rank = 0; rank < all.size() && live.size() < width; ++rank) {
      if (!ends.contains(all[rank].back())) {
        live.push_back(all[rank]);
      } else if (rank < width) {
        ended.push_back(all[rank]);
      }
    }
  }
  if (ended.size() < width) ended.insert(ended.end(), live.begin(), live.end());
  std::stable_sort(ended.begin(), ended.end(), [&](const auto& a, const auto& b) {
    return score(a, seed, penalty) > score(b, seed, penalty);
  });
  return ended;
}

std::vector<Hypothesis> search(std::int64_t width, double penalty, std::int64_t most,
    std::uint64_t seed, const Ends& ends = kOneEnd) {
  infer::Beam beam(width, penalty, most);
  while (!beam.done()) {
    std::vector<std::vector<float>> rows;
    std::vector<std::span<const float>> views;
    for (const auto& hypothesis : beam.live()) rows.push_back(row_after(hypothesis.tokens, seed));
    for (const auto& row : rows) views.emplace_back(row);
    const auto before = beam.live();
    const auto parents =
        beam.advance(views, [&](std::size_t, std::int64_t word) -> std::optional<Finish> {
          if (ends.contains(word)) return Finish::end;
          return std::nullopt;
        });
    for (std::size_t i = 0; i < parents.size(); ++i) {
      Tokens expected = before[static_cast<std::size_t>(parents[i])].tokens;
      expected.push_back(beam.live()[i].tokens.back());
      DOCTEST_REQUIRE(beam.live()[i].tokens == expected);
    }
  }
  return beam.best(width);
}

}  // namespace

DOCTEST_TEST_CASE("beam search finds what a search that ranks everything finds") {
  const auto compare = [](std::int64_t width, double penalty, std::uint64_t seed,
                           const Ends& ends) {
    const auto found = search(width, penalty, 6, seed, ends);
    const auto expected = plain_search(static_cast<std::size_t>(width), penalty, 6, seed, ends);
    DOCTEST_REQUIRE(found.size() == std::min(expected.size(), static_cast<std::size_t>(width)));
    for (std::size_t i = 0; i < found.size(); ++i) {
      DOCTEST_CHECK(found[i].tokens == expected[i]);
      DOCTEST_CHECK(std::abs(found[i].log_prob - log_prob_of(expected[i], seed)) < 1e-9);
      DOCTEST_CHECK((found[i].ending.finish == Finish::end) == ends.contains(expected[i].back()));
    }
  };
  // If most tokens end a text, the tokens that continue are far down in a hypothesis's list.
  for (const Ends& ends : {kOneEnd, Ends{0, 3}, Ends{0, 1, 3}, Ends{0, 1, 2, 3}})
    for (std::uint64_t seed = 1; seed <= 30; ++seed)
      for (const std::int64_t width : {1, 2, 3, 4})
        for (const double penalty : kPenalties) compare(width, penalty, seed, ends);
}

DOCTEST_TEST_CASE("a beam that holds everything finds the best text of all") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<Tokens> texts{{}};  // all texts of three tokens, none of which ends them
    for (int length = 0; length < 3; ++length) {
      std::vector<Tokens> longer;
      for (const auto& text : texts) {
        for (std::int64_t w = 1; w < kWords; ++w) {
          longer.push_back(text);
          longer.back().push_back(w);
        }
      }
      texts = longer;
    }
    const auto best = *std::max_element(texts.begin(), texts.end(),
        [&](auto& a, auto& b) { return log_prob_of(a, seed) < log_prob_of(b, seed); });
    infer::Beam beam(125, 1, 3);
    while (!beam.done()) {
      std::vector<std::vector<float>> rows;
      std::vector<std::span<const float>> views;
      for (const auto& live : beam.live()) {
        rows.push_back(row_after(live.tokens, seed));
        rows.back()[kEnd] = -1e9f;
      }
      for (const auto& row : rows) views.emplace_back(row);
      beam.advance(views, [](auto, auto) { return std::optional<Finish>(); });
    }
    DOCTEST_CHECK(beam.best(1)[0].tokens == best);
    DOCTEST_CHECK(beam.best(1)[0].ending.finish == Finish::length);
  }
}

namespace {

constexpr std::int64_t kSteps = 5;

// Returns every text of kSteps tokens, or fewer if it ends, with its log p.
std::vector<std::pair<Tokens, double>> all_texts(std::uint64_t seed, const Ends& ends) {
  std::vector<std::pair<Tokens, double>> all;
  const std::function<void(const Tokens&, double)> extend = [&](const Tokens& text, double sum) {
    if (std::ssize(text) == kSteps || (!text.empty() && ends.contains(text.back()))) {
      all.emplace_back(text, sum);
      return;
    }
    const auto row = row_after(text, seed);
    for (std::int64_t w = 0; w < kWords; ++w) {
      Tokens longer = text;
      longer.push_back(w);
      extend(longer, sum + row[static_cast<std::size_t>(w)]);
    }
  };
  extend({}, 0);
  return all;
}

// A beam that prunes nothing ranks `texts` texts as brute force does.
void expect_brute_force(std::int64_t texts, const Ends& ends) {
  for (const std::uint64_t seed : {41, 42}) {
    auto all = all_texts(seed, ends);
    DOCTEST_REQUIRE(std::ssize(all) == texts);
    for (const double penalty : kPenalties) {
      const auto ranked = [&](const auto& text) {
        return text.second / std::pow(static_cast<double>(text.first.size()), penalty);
      };
      std::stable_sort(all.begin(), all.end(),
          [&](const auto& a, const auto& b) { return ranked(a) > ranked(b); });
      const auto found = search(2 * texts, penalty, kSteps, seed, ends);
      DOCTEST_REQUIRE(std::ssize(found) == texts);
      for (std::size_t i = 0; i < 50; ++i) {
        DOCTEST_CHECK(found[i].tokens == all[i].first);
        DOCTEST_CHECK(std::abs(found[i].log_prob - all[i].second) < 1e-9);
        DOCTEST_CHECK(
            (found[i].ending.finish == Finish::end) == ends.contains(all[i].first.back()));
      }
    }
  }
}

}  // namespace

DOCTEST_TEST_CASE("a beam that prunes nothing ranks all texts of five steps as brute force does") {
  expect_brute_force(1365, kOneEnd);  // 4^0 + ... + 4^4 that end, 4^5 that do not
  // 2 (3^0 + ... + 3^4) that end, of either end token, and 3^5 that do not.
  expect_brute_force(485, {0, 3});
}

DOCTEST_TEST_CASE("where many words end a text as many hypotheses go on as the beam is wide") {
  // By log p: token 7 continues the text, tokens 0 to 6 end it, tokens 8 to 11 continue it.
  std::vector<float> row(12);
  for (std::size_t w = 0; w < row.size(); ++w) row[w] = -2 - static_cast<float>(w);
  row[7] = -1;
  infer::Beam beam(3, 1, 4);
  const auto parents =
      beam.advance({row}, [](std::size_t, std::int64_t word) -> std::optional<Finish> {
        if (word < 7) return Finish::end;
        return std::nullopt;
      });
  DOCTEST_CHECK(parents == Tokens{0, 0, 0});
  DOCTEST_REQUIRE(beam.live().size() == 3);
  for (const std::int64_t i : {0, 1, 2})
    DOCTEST_CHECK(beam.live()[static_cast<std::size_t>(i)].tokens == Tokens{7 + i});
}

DOCTEST_TEST_CASE("a search of width one is greedy") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Tokens greedy;
    while (greedy.size() < 8 && (greedy.empty() || greedy.back() != kEnd)) {
      const auto row = row_after(greedy, seed);
      greedy.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    }
    DOCTEST_CHECK(search(1, 1, 8, seed)[0].tokens == greedy);
  }
}

DOCTEST_TEST_CASE("texts that a stop string cuts alike count once, with the best of their tokens") {
  infer::Beam beam(2, 1, 4);
  const std::vector<float> row = {-3.0f, -0.5f, -1.0f, -2.0f};
  // Tokens 1 and 2 complete a stop string and leave nothing more than what was before.
  const auto ends = [](std::size_t parent, std::int64_t word) -> std::optional<infer::Ending> {
    if (word != 1 && word != 2) return std::nullopt;
    return infer::Ending(Finish::stop, parent == 0 ? "cut" : "other");
  };
  beam.advance({row}, ends);
  DOCTEST_CHECK_FALSE(beam.done());
  const auto best = beam.best(9);
  const auto cut = [](const Hypothesis& one) { return one.ending.finish == Finish::stop; };
  DOCTEST_CHECK(std::count_if(best.begin(), best.end(), cut) == 1);
  DOCTEST_CHECK(best[0].tokens == Tokens{1});
}
