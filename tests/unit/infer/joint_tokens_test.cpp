// The boundary of a continuation, with a tokenizer whose merges cross it.
#include "infer/answers/answerer.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using Tokens = std::vector<std::int64_t>;

using infer::Boundary;

std::vector<infer::JointTokens> joint(
    const std::string& context, const std::vector<std::string>& continuations, Boundary boundary) {
  // "ab" is one token, and so is " c".
  static const auto tokenizer = text::parse_tokenizer(
      R"({"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
          "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "Ġc": 5},
                    "merges": ["a b", "Ġ c"]}})",
      "test");
  const auto encoder = tokenizer->encoder();
  return infer::encode_jointly(*tokenizer, *encoder, context, continuations, boundary);
}

infer::JointTokens joint(const std::string& context, const std::string& continuation) {
  return joint(context, {continuation}, Boundary::count)[0];
}

}  // namespace

DOCTEST_TEST_CASE(
    "white space goes to the continuation, whose tokens are what the whole has more") {
  const auto plain = joint("a", " c");
  DOCTEST_CHECK(
      (plain.context == Tokens{0} && plain.continuation == Tokens{5} && plain.bytes == 2));
  const auto moved = joint("a ", "c");
  DOCTEST_CHECK(
      (moved.context == Tokens{0} && moved.continuation == Tokens{5} && moved.bytes == 2));
  const auto empty = joint("", "ab");
  DOCTEST_CHECK((empty.context.empty() && empty.continuation == Tokens{4} && empty.bytes == 2));
  const auto blank = joint("  ", "c");
  DOCTEST_CHECK((blank.context.empty() && blank.continuation == Tokens{3, 5} && blank.bytes == 3));
  // Two tokens became one: the continuation is empty.
  DOCTEST_CHECK(joint("a", "b").continuation.empty());
  DOCTEST_CHECK(joint("a", "bc").continuation == Tokens{2});
}

DOCTEST_TEST_CASE("a continuation may begin where the context alone and the whole part ways") {
  const auto prefix = [](const std::string& context, const std::string& continuation) {
    return joint(context, {continuation}, Boundary::prefix)[0];
  };
  // Nothing merges: the result equals that of counting.
  const auto plain = prefix("a ", "c");
  DOCTEST_CHECK(
      (plain.context == Tokens{0} && plain.continuation == Tokens{5} && plain.bytes == 2));
  // "ca" is c, a; "cabc" is c, ab, c.
  const auto joins = prefix("ca", "bc");
  DOCTEST_CHECK(
      (joins.context == Tokens{2} && joins.continuation == Tokens{4, 2} && joins.bytes == 3));
  const auto all = prefix("a", "b");
  DOCTEST_CHECK((all.context.empty() && all.continuation == Tokens{4} && all.bytes == 2));
  DOCTEST_CHECK(prefix("a", "").continuation.empty());
  DOCTEST_CHECK(joint("ca", {}, Boundary::prefix).empty());
  // The choices of one context follow the same tokens, whether they merge with it or not.
  const auto choices = joint("ca", {"c", "b", " c"}, Boundary::prefix);
  for (const auto& choice : choices) DOCTEST_CHECK(choice.context == Tokens{2});
  DOCTEST_CHECK((choices[0].continuation == Tokens{0, 2} && choices[0].bytes == 2));
  DOCTEST_CHECK((choices[1].continuation == Tokens{4} && choices[1].bytes == 2));
  DOCTEST_CHECK((choices[2].continuation == Tokens{0, 5} && choices[2].bytes == 3));
  // By counting, each choice has its own tokens, and "b" has none.
  const auto counted = joint("ca", {"c", "b"}, Boundary::count);
  DOCTEST_CHECK((counted[0].continuation == Tokens{2} && counted[1].continuation.empty()));
}

DOCTEST_TEST_CASE("white space at a text's end, as Python's strings have it") {
  DOCTEST_CHECK(infer::trailing_space("") == 0);
  DOCTEST_CHECK(infer::trailing_space("a b") == 0);
  DOCTEST_CHECK(infer::trailing_space("a \t\n\r\v\f\x1c\x1f") == 8);
  DOCTEST_CHECK(infer::trailing_space("a\xc2\xa0\xe2\x80\x83 \xe3\x80\x80") == 9);
  DOCTEST_CHECK(infer::trailing_space("a\xe2\x80\x8b") == 0);  // zero width: no white space
  DOCTEST_CHECK(infer::trailing_space("\xa0") == 0);           // a byte that is no character
}
