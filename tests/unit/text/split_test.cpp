// UTF-8, and splitting texts into words.

#include "text/tokenizer/split.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"
#include "unit/text/texts.h"

#include <doctest/doctest.h>

namespace {

using Words = std::vector<std::string>;

Words split(std::string_view text) {
  Words words;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* const stop = text::gpt2_pretoken_end(p, end);
    words.emplace_back(p, stop);
    p = stop;
  }
  return words;
}

Words split_quickly(std::string_view text) {
  Words words;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* const stop = text::gpt2_pretoken_end_quick(p, end);
    words.emplace_back(p, stop);
    p = stop;
  }
  return words;
}

std::string joined(const Words& words) {
  std::string all;
  for (const auto& word : words) all += word;
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("GPT-2's pre-tokens are those of Hugging Face's tokenizers") {
  for (const std::string name : {"sample", "hard"}) {
    std::string pretokens;
    for (const auto& word : split(sample::file(name + ".txt"))) {
      text::append_in_alphabet(word, pretokens);
      pretokens += '\n';
    }
    DOCTEST_CHECK(pretokens == sample::file(name + ".pretokens"));
  }
}

DOCTEST_TEST_CASE("contractions, spaces and words, by hand") {
  DOCTEST_CHECK(split("I'll don't 're's ''d") ==
                Words{"I", "'ll", " don", "'t", " '", "re", "'s", " ''", "d"});
  DOCTEST_CHECK(split("a  b \n\n c\t") == Words{"a", " ", " b", " \n\n", " c", "\t"});
  DOCTEST_CHECK(split("x1y 12,") == Words{"x", "1", "y", " 12", ","});
  // A byte that is no character is classified as punctuation.
  DOCTEST_CHECK(split("a\xff!\xc3 b") == Words{"a", "\xff!\xc3", " b"});
}

DOCTEST_TEST_CASE("pre-tokens cover any bytes, and the quick way finds the same") {
  DOCTEST_CHECK(rc::check([] {
    const std::string text = *sample::text();
    RC_ASSERT(joined(split(text)) == text);
    RC_ASSERT(split_quickly(text) == split(text));
  }));
  DOCTEST_CHECK(rc::check([](const std::string& text) { RC_ASSERT(joined(split(text)) == text); }));
}

DOCTEST_TEST_CASE("a cut changes no pre-token, whatever follows") {
  DOCTEST_CHECK(rc::check([] {
    const std::string text = *sample::text();
    const auto known = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const char* cut = text::gpt2_cut(text.data(), text.data() + known);
    if (cut == nullptr) return;
    const auto at = static_cast<std::size_t>(cut - text.data());
    RC_ASSERT(at > 0 && at <= known);
    Words parts = split(text.substr(0, at));
    for (auto& word : split(text.substr(at))) parts.push_back(word);
    RC_ASSERT(parts == split(text));
  }));
}

DOCTEST_TEST_CASE("a word of many megabytes is cut at the limit, at a border of characters") {
  const std::string word = std::string("x") + [] {
    std::string all;
    while (all.size() < 3 * text::kMaxPretokenBytes) all += "\u00e9";
    return all;
  }();
  const Words words = split(word);
  DOCTEST_REQUIRE(words.size() == 3);
  DOCTEST_CHECK(words[0].size() == text::kMaxPretokenBytes + 1);
  DOCTEST_CHECK(words[1].size() == text::kMaxPretokenBytes);
  DOCTEST_CHECK(joined(words) == word);
  // In a part of the text the cut is at the same place.
  const char* cut = text::gpt2_cut(word.data(), word.data() + text::kMaxPretokenBytes + 100);
  DOCTEST_CHECK(cut == word.data() + words[0].size());
  DOCTEST_CHECK(text::gpt2_cut(word.data(), word.data() + 1000) == nullptr);
}

DOCTEST_TEST_CASE("characters: what is UTF-8 and what is not") {
  const auto read = [](std::string_view text) {
    const text::Char c = text::decode_char(text.data(), text.data() + text.size());
    return std::pair(c.code_point, c.bytes);
  };
  const auto invalid = std::pair(text::Char::kInvalid, 1u);
  DOCTEST_CHECK(read("\u00e9x") == std::pair(0xE9u, 2u));
  DOCTEST_CHECK(read("\U0010FFFF") == std::pair(0x10FFFFu, 4u));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe4\xbd", "\xff"})
    DOCTEST_CHECK(read(bad) == invalid);
}

DOCTEST_TEST_CASE("going back through any bytes meets the characters of going forward") {
  DOCTEST_CHECK(rc::check([] {
    const std::string text = *sample::text();
    const char* const end = text.data() + text.size();
    std::vector<const char*> forward, back;
    for (const char* p = text.data(); p < end; p += text::decode_char(p, end).bytes)
      forward.push_back(p);
    for (const char* p = end; p > text.data();) {
      p = text::previous_char(text.data(), p);
      back.push_back(p);
    }
    std::reverse(back.begin(), back.end());
    RC_ASSERT(forward == back);
  }));
}

DOCTEST_TEST_CASE("words between white space, in pieces too") {
  const auto plainly = [](const std::string& text) {
    std::uint64_t words = 0;
    bool in_word = false;
    for (const char c : text) {
      const bool space = c == ' ' || (c >= 9 && c <= 13);
      words += !space && !in_word;
      in_word = !space;
    }
    return words;
  };
  DOCTEST_CHECK(rc::check([&] {
    const std::string text = *sample::text();
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    bool in_word = false;
    std::uint64_t words = text::count_words(text.substr(0, at), in_word);
    words += text::count_words(text.substr(at), in_word);
    RC_ASSERT(words == plainly(text));
  }));
}

DOCTEST_TEST_CASE("plain and white-space words may be cut where Tokenizer::cut says") {
  const auto words_of = [](std::string_view text, bool unicode) {
    Words words;
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      if (unicode ? text::skip_unicode_space(p, end) != p : *p == ' ' || *p == '\n') {
        p = unicode ? text::skip_unicode_space(p, end) : p + 1;
        continue;
      }
      const char* stop = unicode ? text::unicode_word_end(p, end) : text::plain_word_end(p, end);
      words.emplace_back(p, stop);
      p = stop;
    }
    return words;
  };
  for (const bool unicode : {false, true}) {
    DOCTEST_CHECK(rc::check([&] {
      const std::string text = *sample::text();
      const auto known = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
      const char* cut = (unicode ? text::unicode_word_cut : text::plain_word_cut)(
          text.data(), text.data() + known);
      if (cut == nullptr) return;
      const auto at = static_cast<std::size_t>(cut - text.data());
      Words parts = words_of(text.substr(0, at), unicode);
      for (auto& word : words_of(text.substr(at), unicode)) parts.push_back(word);
      RC_ASSERT(parts == words_of(text, unicode));
    }));
  }
}
