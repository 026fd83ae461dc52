// The longest token that matches, of RWKV's vocabulary.

#include <doctest/doctest.h>

#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/gpt2_split.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

namespace {

using Ids = std::vector<std::uint32_t>;

// A token as Python writes bytes.
std::string line(std::uint32_t id, std::string_view token) {
  std::string text = fmt::format("{} b'", id);
  for (const char c : token) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text + fmt::format("' {}\n", token.size());
}

// The 256 bytes with the ids from 1 on, then `more`.
std::string file_of(const std::vector<std::string>& more) {
  std::string text;
  for (std::uint32_t b = 0; b < 256; ++b) text += line(b + 1, std::string(1, static_cast<char>(b)));
  for (std::uint32_t i = 0; i < more.size(); ++i) text += line(257 + i, more[i]);
  return text;
}

text::TokenizerPtr made_of(const std::vector<std::string>& more) {
  return text::import_world({"vocabulary", file_of(more)});
}

// Tries every length at each place, the longest first.
Ids slowly(const text::Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  const auto has = [&](std::string_view part) {
    return tokenizer.model_id_of(part).value_or(0) != 0;  // 0 ends documents
  };
  while (!text.empty()) {
    std::size_t bytes = text.size();
    while (!has(text.substr(0, bytes))) --bytes;
    ids.push_back(*tokenizer.model_id_of(text.substr(0, bytes)));
    text.remove_prefix(bytes);
  }
  return ids;
}

Thrown vocabulary_refused(const std::string& text) {
  return thrown([&] { text::import_world({"x.txt", text}); });
}

// Words of few letters, so that tokens begin with others and overlap.
rc::Gen<std::string> word() {
  return rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\xe3 "))));
}

}  // namespace

DOCTEST_TEST_CASE("longest: each token is the longest that the rest of the text begins with") {
  DOCTEST_CHECK(rc::check([&] {
    auto more = *rc::gen::unique<std::vector<std::string>>(word());
    std::erase_if(more, [](const std::string& token) { return token.size() == 1; });
    const auto tokenizer = made_of(more);
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\xe3 \xff")));
    const auto ids = tokenizer->encode(text);
    RC_ASSERT(ids == slowly(*tokenizer, text));
    RC_ASSERT(tokenizer->decode(ids) == text);
    const auto again = text::parse_tokenizer(tokenizer->json(), "x.json");
    RC_ASSERT(again->json() == tokenizer->json());
    RC_ASSERT(again->encode(text) == ids);
  }));
}

DOCTEST_TEST_CASE("longest: a stream of any pieces gives the ids of the whole text") {
  const auto tokenizer = made_of({"ab", "abab", "ba", "babababa", "<|end", "<|endoftext|>x"});
  for (const auto& encodes : {tokenizer, tokenizer->parsing_special()})
    DOCTEST_CHECK(rc::check([&] {
      const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
          std::vector<std::string>{"ab", "b", "aba", "<|endoftext|>", "<|end", "oftext|>", "x"}));
      text::StreamEncoder stream(encodes);
      std::string text;
      Ids ids;
      for (const auto& piece : pieces) stream.feed(piece, ids), text += piece;
      stream.finish(ids);
      RC_ASSERT(ids == encodes->encode(text));
    }));
}

DOCTEST_TEST_CASE(
    "longest: a text longer than any pre-token is cut where a token ends for certain") {
  const auto tokenizer = made_of({"abc", "bca", "abcabcab"});
  std::string text;
  while (text.size() < 3 * text::kMaxPretokenBytes) text += "abcabcabbcaab";
  text::StreamEncoder stream(tokenizer);
  Ids ids;
  for (std::size_t i = 0; i < text.size(); i += 1000003) stream.feed(text.substr(i, 1000003), ids);
  stream.finish(ids);
  DOCTEST_CHECK(ids == tokenizer->encode(text));
  const char* const cut = tokenizer->cut(text.data(), text.data() + 100);
  DOCTEST_REQUIRE(cut != nullptr);
  DOCTEST_CHECK(cut - text.data() <= 92);
}

DOCTEST_TEST_CASE("longest: literals are as Python writes them, and 0 ends documents") {
  const auto tokenizer = text::import_world({"v", file_of({}) + R"(300 '\t\n\r\\\'' 5
301 "it's" 4
302 'é\x85\u3000' 7
303 b'\xe3\x80' 2
304 '\U0001f642 a' 6
)"});
  for (const auto& [text, id] :
      std::vector<std::pair<std::string, std::uint32_t>>{{"\t\n\r\\'", 300}, {"it's", 301},
          {"\u00e9\u0085\u3000", 302}, {"\xe3\x80", 303}, {"\U0001f642 a", 304}})
    DOCTEST_CHECK(tokenizer->encode(text) == Ids{id});
  DOCTEST_CHECK(tokenizer->end_of_document() == 0u);
  DOCTEST_CHECK(tokenizer->size() == 305);
  // The text of the end is ordinary text, unless it is parsed.
  DOCTEST_CHECK(tokenizer->encode("<|endoftext|>") == slowly(*made_of({}), "<|endoftext|>"));
  DOCTEST_CHECK(tokenizer->parsing_special()->encode("a<|endoftext|>b") == Ids{98, 0, 99});
}

DOCTEST_TEST_CASE("longest: a damaged vocabulary is refused with its line") {
  const auto whole = file_of({"ab"});
  const auto names = [&](const std::string& last, std::string_view part) {
    const auto error = vocabulary_refused(whole + last);
    return error.code == 65 && error.names("x.txt:258: ") && error.names(part);
  };
  for (const char* last : {"x", "300", "300 'a'", "300  1", "300 aa 2", "300 b 1", "-1 'aa' 2",
           "300 'aa' x", "300 'aa'2"})
    DOCTEST_CHECK_MESSAGE(names(last, "not an id"), last);
  DOCTEST_CHECK(names("300 'aa' 3", "not a token of 3 bytes"));
  DOCTEST_CHECK(names("300 '' 0", "not a token of 0 bytes"));
  DOCTEST_CHECK(names("300 'aa'a' 3", "not a token of 3 bytes"));
  DOCTEST_CHECK(names("300 'aa 2", "unterminated"));
  DOCTEST_CHECK(names("300 '\\xz0a' 2", "without its digits"));
  DOCTEST_CHECK(names("300 '\\ud800' 3", "no character"));
  DOCTEST_CHECK(names("300 'ab' 2", "twice"));
  DOCTEST_CHECK(names("1 'aa' 2", "twice"));
  DOCTEST_CHECK(names("4000000000 'aa' 2", "too high"));
  DOCTEST_CHECK(vocabulary_refused(line(1, "a")).names("x.txt: no token for byte 0"));
  DOCTEST_CHECK(
      vocabulary_refused(file_of({std::string(5000, 'a')})).names("x.txt: a token of 5000 bytes"));
}
