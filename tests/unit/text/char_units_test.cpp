// fairseq's dictionaries, subword-nmt's codes, and the units that they give.

#include "text/tokenizer/word_level.h"

#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Ids = std::vector<std::uint32_t>;

const text::NamedText kCodes{"codes", "#version: 0.2\nl o\nlo w</w>\n\u00e9 l\n"};

std::vector<std::string> names(const text::Tokenizer& tokenizer, const Ids& ids) {
  std::vector<std::string> all;
  for (const std::uint32_t id : ids) all.emplace_back(tokenizer.token(id));
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("dict.txt: fairseq's four special tokens, then the words; a newline is </s>") {
  const auto tokenizer = text::import_fairseq({"dict.txt", "the 50\nof 3 #fairseq:overwrite\n"});
  DOCTEST_CHECK(names(*tokenizer, {0, 1, 2, 3, 4, 5}) ==
                std::vector<std::string>{"<s>", "<pad>", "</s>", "<unk>", "the", "of"});
  DOCTEST_CHECK(tokenizer->encode("of the sea\n") == Ids{5, 4, 3, 2});
  DOCTEST_CHECK(text::parse_tokenizer(tokenizer->json(), "x")->encode("of\n") == Ids{5, 2});
  const auto bad = [](const std::string& text) {
    return thrown([&] { text::import_fairseq({"dict.txt", text}); });
  };
  DOCTEST_CHECK(bad("the 50\nof\n").names("dict.txt:2:"));
  DOCTEST_CHECK(bad("the 50\nof x\n").names("dict.txt:2:"));
  DOCTEST_CHECK(bad("the 50\nthe 40\n").names("dict.txt:2: the occurs twice"));
  DOCTEST_CHECK(bad("\xff 50\n").names("dict.txt:1: not UTF-8"));
}

DOCTEST_TEST_CASE("codes: words cut into units by the merges, the last one marked") {
  const auto tokenizer = text::import_codes(kCodes, nullptr);
  const auto units = [&](std::string_view text) {
    return names(*tokenizer, tokenizer->encode(text));
  };
  DOCTEST_CHECK(units("low lo\tl") == std::vector<std::string>{"low</w>", "l", "o</w>", "l</w>"});
  // A merge applies to characters as they are: a character at the end of a word is a different one.
  DOCTEST_CHECK(units("\u00e9lo") == std::vector<std::string>{"\u00e9l", "o</w>"});
  DOCTEST_CHECK(units("lxw") == std::vector<std::string>{"l", "<unk>", "w</w>"});
  DOCTEST_CHECK(tokenizer->token(*tokenizer->end_of_document()) == "</s>");
  DOCTEST_CHECK(tokenizer->decode(tokenizer->encode(" low  \u00e9lo\nl ")) == "low \u00e9lo l");
  DOCTEST_CHECK(tokenizer->decode(tokenizer->encode("low x lo")) == "low <unk> lo");
  const auto again = text::parse_tokenizer(tokenizer->json(), "x");
  DOCTEST_CHECK(again->kind() == text::TokenizerKind::units);
  DOCTEST_CHECK(again->json() == tokenizer->json());
}

DOCTEST_TEST_CASE("codes with a dict.txt: its ids, then what it lacks") {
  const text::NamedText dictionary{"dict.txt", "low 9\nlo@@ 5\n@@@ 4\nl 2\n"};
  const auto tokenizer = text::import_codes(kCodes, &dictionary);
  DOCTEST_CHECK(
      names(*tokenizer, {4, 5, 6, 7}) == std::vector<std::string>{"low</w>", "lo", "@", "l</w>"});
  DOCTEST_CHECK(tokenizer->encode("low") == Ids{4});
  DOCTEST_CHECK(tokenizer->encode("lol") == Ids{5, 7});
}

DOCTEST_TEST_CASE("codes that are none are named with the line") {
  const auto bad = [](const std::string& text) {
    return thrown([&] { text::import_codes({"codes", text}, nullptr); });
  };
  DOCTEST_CHECK(bad("l o\n").names("codes:1:"));
  DOCTEST_CHECK(bad("#version: 0.1\nl o\n").names("codes:1:"));
  DOCTEST_CHECK(bad("#version: 0.2\nl o\nlow\n").names("codes:3:"));
  DOCTEST_CHECK(bad("#version: 0.2\nl o w\n").names("codes:2:"));
  DOCTEST_CHECK(bad("#version: 0.2\nl \xff\n").names("codes:2:"));
}

DOCTEST_TEST_CASE("units: a stream of pieces gives the ids of the whole text") {
  const auto tokenizer = text::import_codes(kCodes, nullptr);
  DOCTEST_CHECK(rc::check([&] {
    const std::string text = *sample::text() + "low" + *sample::text();
    text::StreamEncoder stream(tokenizer);
    Ids ids;
    for (std::size_t at = 0; at < text.size();) {
      const auto n = *rc::gen::inRange<std::size_t>(1, 9);
      stream.feed(std::string_view(text).substr(at, n), ids);
      at += n;
    }
    stream.finish(ids);
    RC_ASSERT(ids == tokenizer->encode(text));
  }));
}
