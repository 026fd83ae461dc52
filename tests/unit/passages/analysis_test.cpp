// The terms of a text.

#include "passages/analysis.h"

#include "unit/text/texts.h"

#include <doctest/doctest.h>

namespace {

using Terms = std::vector<std::string>;

Terms terms_of(const std::string& text) {
  passages::Analyzer analyzer;
  std::vector<std::uint32_t> numbers;
  analyzer.analyze(text, numbers);
  Terms terms;
  for (const auto number : numbers) terms.push_back(analyzer.term(number));
  return terms;
}

}  // namespace

DOCTEST_TEST_CASE("lower case, stop words, Porter's stems") {
  DOCTEST_CHECK(terms_of("The Relational ponies WERE running at the conditional house") ==
                Terms{"relat", "poni", "were", "run", "condit", "hous"});
  DOCTEST_CHECK(
      terms_of("a an and are as at be but by for if in into is it no not of on or such "
               "that the their then there these they this to was will with")
          .empty());
  DOCTEST_CHECK(terms_of("It was THE Will") == Terms{});
  DOCTEST_CHECK(terms_of("<unk> @-@ = = ").size() == 1);
}

DOCTEST_TEST_CASE("words are as they stand in the text, with their terms") {
  passages::Analyzer analyzer;
  const std::string text = "The Ponies of Anna's pony, it is said";
  std::vector<std::uint32_t> numbers, alone;
  std::vector<std::string_view> words;
  analyzer.analyze(text, numbers, &words);
  analyzer.analyze(text, alone);
  DOCTEST_CHECK(numbers == alone);
  DOCTEST_CHECK(words == std::vector<std::string_view>{"Ponies", "Anna's", "pony", "said"});
  DOCTEST_CHECK(words.at(0).data() == text.data() + 4);
  DOCTEST_CHECK(numbers.at(0) == numbers.at(2));
}

DOCTEST_TEST_CASE("where words end") {
  DOCTEST_CHECK(terms_of("don't U.S.A. 3.14 1,000; x:y 8:30 a.5") ==
                Terms{"don't", "u.s.a", "3.14", "1,000", "x:y", "8", "30", "5"});
  DOCTEST_CHECK(terms_of("Smith's SMITH'S smith\xE2\x80\x99s smiths' s's") ==
                Terms{"smith", "smith", "smith", "smith", "s"});
  DOCTEST_CHECK(terms_of("x_1 _ __ _9") == Terms{"x_1", "_9"});
  // ÉTÉ; e and a combining acute accent; Москва; two ideographs.
  DOCTEST_CHECK(
      terms_of("\xC3\x89T\xC3\x89 caf\x65\xCC\x81z \xD0\x9C\xD0\xBE\xD1\x81\xD0\xBA\xD0"
               "\xB2\xD0\xB0 \xE6\x9D\xB1\xE4\xBA\xAC") ==
      Terms{"\xC3\xA9t\xC3\xA9", "caf\x65\xCC\x81z",
          "\xD0\xBC\xD0\xBE\xD1\x81\xD0\xBA\xD0\xB2\xD0\xB0", "\xE6\x9D\xB1", "\xE4\xBA\xAC"});
  DOCTEST_CHECK(terms_of("left\xFFright") == Terms{"left", "right"});
}

DOCTEST_TEST_CASE("any bytes: parts between spaces give the terms of the whole") {
  DOCTEST_CHECK(rc::check([] {
    const auto one = *sample::text(), other = *sample::text();
    auto apart = terms_of(one);
    const auto second = terms_of(other);
    apart.insert(apart.end(), second.begin(), second.end());
    RC_ASSERT(terms_of(one + " " + other) == apart);
  }));
}
