// Merges from scores: all ways to make a token of two others, best token first, and their bound.

#include "text/formats/sentencepiece.h"

#include <doctest/doctest.h>

#include "unit/thrown.h"

namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

/// Runs of 1 to `most` equal letters, for each of the first letters.
std::vector<std::string> runs_of_letters(int letters, std::size_t most) {
  std::vector<std::string> runs;
  for (int letter = 0; letter < letters; ++letter)
    for (std::size_t n = 1; n <= most; ++n) runs.emplace_back(n, static_cast<char>('a' + letter));
  return runs;
}

Pairs merges_of(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> tokens(texts.begin(), texts.end());
  std::vector<double> scores;
  for (std::size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<double>(i));
  return text::scored_merges(tokens, scores, std::vector<bool>(tokens.size(), true), "x.model");
}

}  // namespace

DOCTEST_TEST_CASE("merges from scores: the better token first, then the ids of its parts") {
  DOCTEST_CHECK(
      merges_of({"a", "b", "ab", "abab", "aba", "ba"}) == Pairs{{"a", "b"},                // ab
                                                              {"ab", "ab"}, {"aba", "b"},  // abab
                                                              {"a", "ba"}, {"ab", "a"},    // aba
                                                              {"b", "a"}});
  // A run of one letter is made of each two shorter ones.
  DOCTEST_CHECK(merges_of(runs_of_letters(1, 256)).size() == 256 * 255 / 2);
}

DOCTEST_TEST_CASE("merges from scores: their number is bounded by the number of tokens") {
  const auto error = thrown([] { merges_of(runs_of_letters(20, 256)); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.text.starts_with("x.model: its 5120 tokens are made of two others in more"));
  DOCTEST_CHECK(merges_of(runs_of_letters(20, 33)).size() == 20 * 33 * 32 / 2);
}
