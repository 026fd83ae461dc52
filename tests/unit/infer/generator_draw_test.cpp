// The tokens from which the next is drawn, by hand; stop strings; prompts; beam search.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "infer/generate/generator_beam.h"
#include "infer/generate/generator_draw.h"
#include "infer/generate/generator_prompts.h"
#include "unit/thrown.h"

namespace {

using Pairs = std::vector<std::pair<std::int64_t, double>>;

std::vector<float> logs(std::vector<double> p) {
  std::vector<float> out;
  for (const double x : p) out.push_back(static_cast<float>(std::log(x)));
  return out;
}

infer::Draw draw_of(double temperature, std::int64_t top_k = 0, double top_p = 1) {
  infer::DrawOptions options;
  options.temperature = temperature, options.top_k = top_k, options.top_p = top_p;
  return infer::Draw(options);
}

void check_same(const Pairs& got, const Pairs& expected) {
  DOCTEST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    DOCTEST_CHECK(got[i].first == expected[i].first);
    DOCTEST_CHECK(std::abs(got[i].second - expected[i].second) < 1e-6);
  }
}

std::vector<float> random_row(core::Rng& rng, std::size_t words) {
  std::vector<float> row;
  for (std::size_t i = 0; i < words; ++i) row.push_back(static_cast<float>(4 * rng.normal()));
  return row;
}

}  // namespace

DOCTEST_TEST_CASE("temperature, top-k and top-p leave the words they should, by hand") {
  const auto row = logs({0.1, 0.4, 0.05, 0.25, 0.2});
  check_same(draw_of(1).distribution(row), {{0, 0.1}, {1, 0.4}, {2, 0.05}, {3, 0.25}, {4, 0.2}});
  check_same(draw_of(0).distribution(row), {{1, 1}});
  check_same(draw_of(1, 2).distribution(row), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  check_same(draw_of(1, 0, 0.6).distribution(row), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  check_same(
      draw_of(1, 0, 0.66).distribution(row), {{1, 0.4 / 0.85}, {3, 0.25 / 0.85}, {4, 0.2 / 0.85}});
  check_same(draw_of(1, 0, 1e-9).distribution(row), {{1, 1}});
  // top-p applies after top-k: 0.4 of 0.65 is more than 0.6.
  check_same(draw_of(1, 2, 0.6).distribution(row), {{1, 1}});
  // p^(1/T), T = 1/2: squares.
  const double squares = 0.16 + 0.0625 + 0.04;
  check_same(draw_of(0.5, 3).distribution(row),
      {{1, 0.16 / squares}, {3, 0.0625 / squares}, {4, 0.04 / squares}});
  // A number above the vocabulary size keeps all tokens.
  check_same(draw_of(1, 99).distribution(row), draw_of(1).distribution(row));
}

DOCTEST_TEST_CASE("a temperature that is all but 0 draws the best word") {
  core::Rng rng(3);
  const auto row = random_row(rng, 300);
  for (const double temperature : {1e-30, 1e-38, 1e-39, 1e-45, 1e-300, 5e-324})
    for (const auto& [top_k, top_p] : std::vector<std::pair<std::int64_t, double>>{
             {0, 1.0}, {5, 1.0}, {0, 0.8}, {0, 0.9999}, {40, 0.5}}) {
      DOCTEST_CAPTURE(temperature);
      auto draw = draw_of(temperature, top_k, top_p);
      for (int i = 0; i < 5; ++i) DOCTEST_CHECK(draw(row, rng) == infer::best_token(row));
    }
  check_same(
      draw_of(1e-300).distribution(logs({0.2, 0.5, 0, 0.3})), {{0, 0}, {1, 1}, {2, 0}, {3, 0}});
}

DOCTEST_TEST_CASE("of equal words the lower id is the better") {
  const std::vector<float> row(10, -1.5f);
  DOCTEST_CHECK(infer::best_token(row) == 0);
  DOCTEST_CHECK(infer::best_tokens(row, 3) == std::vector<std::int64_t>{0, 1, 2});
  check_same(draw_of(1, 2).distribution(row), {{0, 0.5}, {1, 0.5}});
  std::vector<float> later = row;
  later[7] = later[4] = -1;
  DOCTEST_CHECK(infer::best_tokens(later, 3) == std::vector<std::int64_t>{4, 7, 0});
}

DOCTEST_TEST_CASE("the best words are those of a full sort, whatever their number") {
  core::Rng rng(5);
  const auto row = random_row(rng, 4000);
  std::vector<std::int64_t> all(row.size());
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](auto a, auto b) {
    return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
  });
  for (const std::int64_t n : {1, 2, 63, 1024, 1025, 3999, 4000, 5000}) {
    const auto best = infer::best_tokens(row, n);
    DOCTEST_CHECK(best == std::vector<std::int64_t>(
                              all.begin(), all.begin() + std::min<std::int64_t>(n, 4000)));
  }
}

DOCTEST_TEST_CASE("a draw inverts the distribution at the generator's number") {
  core::Rng rng(11);
  for (const auto& [top_k, top_p] : std::vector<std::pair<std::int64_t, double>>{
           {0, 1.0}, {5, 1.0}, {0, 0.8}, {0, 0.9999}, {40, 0.5}}) {
    auto draw = draw_of(0.7, top_k, top_p);
    for (int i = 0; i < 50; ++i) {
      const auto row = random_row(rng, 300);
      core::Rng same = rng;
      const double u = same.uniform();
      double before = 0;
      std::int64_t expected = -1;
      for (const auto& [word, p] : draw.distribution(row)) {
        expected = word;
        before += p;
        if (u < before) break;
      }
      DOCTEST_CHECK(draw(row, rng) == expected);
      DOCTEST_CHECK(rng.state() == same.state());
    }
  }
}

DOCTEST_TEST_CASE("what is no number is named, and an impossible word is not drawn") {
  core::Rng rng(1);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), inf}) {
    std::vector<float> row(50, -1);
    row[31] = bad;
    DOCTEST_CHECK(thrown([&] { draw_of(1)(row, rng); }).code == 65);
  }
  const std::vector<float> none(5, -inf);
  DOCTEST_CHECK(thrown([&] { draw_of(0)(none, rng); }).names("not finite"));
  std::vector<float> one(64, -inf);
  one[40] = -0.5f;
  for (int i = 0; i < 100; ++i) DOCTEST_CHECK(draw_of(1)(one, rng) == 40);
}

DOCTEST_TEST_CASE("a text stops where it would stop byte by byte, however it is cut") {
  const std::vector<std::vector<std::string>> stops = {
      {"end"}, {"\n\n", "nd"}, {"abcab", "ca"}, {"aab"}, {"b", "aab"}, {}, {"\xC3\xA9"}};
  core::Rng rng(9);
  const std::string letters = "abcend\n\xC3\xA9";
  for (int round = 0; round < 300; ++round) {
    const auto& list = stops[rng.below(stops.size())];
    std::string text;
    while (text.size() < 40) text += letters[rng.below(letters.size())];
    infer::StopText whole(list), pieces(list);
    std::string told;
    for (const char c : text) whole.push(std::string_view(&c, 1));
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = std::min<std::size_t>(1 + rng.below(7), text.size() - at);
      const bool stopped = pieces.push(std::string_view(text).substr(at, n));
      at += n;
      DOCTEST_REQUIRE(stopped == pieces.stopped());
      const std::string settled = pieces.text().substr(0, pieces.settled());
      DOCTEST_REQUIRE(settled.starts_with(told));  // reported text is never withdrawn
      told = settled;
    }
    DOCTEST_REQUIRE(pieces.stopped() == whole.stopped());
    DOCTEST_REQUIRE(pieces.text() == whole.text());
    DOCTEST_REQUIRE(text.starts_with(pieces.text()));
    for (const auto& stop : list) DOCTEST_REQUIRE(pieces.text().find(stop) == std::string::npos);
    if (!pieces.stopped()) DOCTEST_REQUIRE(pieces.text() == text);
  }
}

DOCTEST_TEST_CASE("what may be the start of a stop string is held back, no more") {
  const std::vector<std::string> stops = {"STOP", "PP"};
  infer::StopText text(stops);
  text.push("aST");
  DOCTEST_CHECK(text.settled() == 1);
  text.push("OX");
  DOCTEST_CHECK(text.settled() == 5);
  text.push("P");
  DOCTEST_CHECK(text.settled() == 5);
  DOCTEST_CHECK(text.push("P"));
  DOCTEST_CHECK(text.text() == "aSTOX");
  DOCTEST_CHECK(text.settled() == 5);
  DOCTEST_CHECK(text.push("more"));
  DOCTEST_CHECK(text.text() == "aSTOX");
}
