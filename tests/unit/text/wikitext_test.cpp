// WikiText's pages, their words, and detokenisation.

#include "text/documents/text_source.h"

#include <doctest/doctest.h>

DOCTEST_TEST_CASE("a page begins with a title, not with the heading of a part") {
  for (const char* title : {" = Robert <unk> = ", "= A =", "\t = A = B = \r", " = A == B = "})
    DOCTEST_CHECK(text::is_wikitext_title(title));
  for (const char* line : {" = = Career = = ", " = = = 2000 = = = ", "", " ", "=", " = ",
           "= =", " a = b = ", " = a", "a =", " = = a = ", " = = = = x = = = = "})
    DOCTEST_CHECK_FALSE(text::is_wikitext_title(line));
}

DOCTEST_TEST_CASE("words are the pieces between white space, empty ones at the ends among them") {
  const std::vector<std::pair<std::string, std::uint64_t>> cases = {{"", 1}, {" ", 2}, {"a", 1},
      {"a b", 2}, {" a b ", 4}, {"a\n \tb", 2}, {"a\u00a0b", 2}, {"a\u2009b\u3000c", 3},
      {"a\u200bb", 1},
      {"a\x1f"
       "b",
          2},
      {"\u1680\u205fx", 2}, {"a\u2028b\u202fc\u0085", 4}, {"\u00e9 \u20ac", 2}};
  for (const auto& [page, words] : cases) {
    DOCTEST_CAPTURE(page);
    DOCTEST_CHECK(text::wikitext_words(page) == words);
  }
}

DOCTEST_TEST_CASE("spaces that set words apart are undone") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {" a guest @-@ starring role , and 1 @,@ 000 or 1 @.@ 5 . He",
          " a guest-starring role, and 1,000 or 1.5. He"},
      {"a : b ; c ! d ? e", "a: b; c! d? e"}, {"( a b ) [ c ] { d } (  )", "(a b) [c] {d} ()"},
      {"( a ( b ) c )", "(a ( b) c )"}, {"( never closed", "( never closed"},
      {"he said \" yes \" and \" no \"", "he said \"yes\" and \"no\""},
      {"it ' s the boys ' turn", "it's the boys' turn"}, {"the dog 's tail", "the dog's tail"},
      {" = Title = \n \n = = Part = = \n = = = x = = = \n",
          " = Title =\n\n== Part ==\n=== x ===\n"},
      {"5 \u00b0 N of", "5\u00b0N of"}, {"No N here", "No 1 here"}, {"/' 5/ x", "/'[0-9]/ x"},
      {"(\u00a0a )", "(a)"}, {"", ""}};
  for (const auto& [page, plain] : cases) {
    DOCTEST_CAPTURE(page);
    DOCTEST_CHECK(text::wikitext_detokenised(page) == plain);
  }
}
