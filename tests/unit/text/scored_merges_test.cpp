// Merges from scores: all ways to make a token of two others, best token first, and their bound.

#include "text/formats/sentencepiece.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "text/formats/tokenizer_json.h"
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

// The ids are those of Hugging Face's tokenizers 0.23.
DOCTEST_TEST_CASE(
    "merges of bytes: of characters without a token, and of a text that is a byte's name") {
  std::string vocabulary = R"("<unk>":0)";
  for (int i = 0; i < 256; ++i) vocabulary += fmt::format(R"(,"<0x{:02X}>":{})", i, i + 1);
  int id = 257;
  for (const char* const piece : {"a", "<", "0", "x", "4", "1", ">", "<0xC3><0xA9>", "a<0xC3>",
           "<0", "<0x", "<0x4", "<0x41", "<0x41>a"})
    vocabulary += fmt::format(R"(,"{}":{})", piece, id++);
  const auto tokenizer = text::parse_tokenizer(
      R"({"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{)" +
          vocabulary +
          R"(},"merges":["< 0","<0 x","<0x 4","<0x4 1","<0x41 >","<0x41> a","<0xC3> <0xA9>",)"
          R"("a <0xC3>"]},"added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
          R"("post_processor":null,"decoder":{"type":"Sequence","decoders":[)"
          R"({"type":"ByteFallback"},{"type":"Fuse"}]}})",
      "x");
  using Ids = std::vector<std::uint32_t>;
  DOCTEST_CHECK(tokenizer->encode("a\u00e9a") == Ids{257, 264, 257});
  DOCTEST_CHECK(tokenizer->encode("a\u00c3a") == Ids{265, 132, 257});
  DOCTEST_CHECK(tokenizer->encode("<0x41>a") == Ids{270});
  DOCTEST_CHECK(tokenizer->encode("\u00e9<0x41>\u00e9") == Ids{264, 66, 264});
  DOCTEST_CHECK(tokenizer->encode("aA<0x41>a") == Ids{257, 66, 270});
  DOCTEST_CHECK(tokenizer->encode("\u00e9\u00e9a<") == Ids{264, 264, 257, 258});
}
