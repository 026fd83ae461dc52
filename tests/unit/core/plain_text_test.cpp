// UTF-8 and other text; lines that are nearly JSON.
#include "core/plain_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/io.h"
#include "core/json_line.h"
#include "unit/thrown.h"

using namespace std::string_literals;

namespace {

std::string read(const std::string& text) {
  core::MemorySource source(std::string_view(text), "f");
  return core::read_utf8(source);
}

}  // namespace

DOCTEST_TEST_CASE("what is UTF-8, what could become it, and what is written for the rest") {
  struct Case {
    std::string text;
    std::size_t length, unfinished;
    std::string replaced;
    std::uint64_t count;
  };
  const std::string u = "\xEF\xBF\xBD";
  const std::vector<Case> cases = {
      {"", 0, 0, "", 0},
      {"plain text, long enough for words", 33, 0, "plain text, long enough for words", 0},
      {"1234567\xc3\xa9 1234567", 17, 0, "1234567\xc3\xa9 1234567", 0},
      {"\xf4\x8f\xbf\xbf", 4, 0, "\xf4\x8f\xbf\xbf", 0},
      {"a\xe9", 1, 1, "a" + u, 1},
      {"a\xe9z", 1, 0, "a" + u + "z", 1},
      {"12345678\xff", 8, 0, "12345678" + u, 1},
      {"\xc0\xaf", 0, 0, u + u, 2},          // an overlong form
      {"\xed\xa0\x80", 0, 0, u + u + u, 3},  // a surrogate
      {"\xf4\x90\x80\x80", 0, 0, u + u + u + u, 4},
      {"\xf0\x9f\x98", 0, 3, u, 1},
      {"\xf0\x9f\x98z", 0, 0, u + "z", 1},
      {"\xe0\x80", 0, 0, u + u, 2},
      {"\xe2\x82", 0, 2, u, 1},
      {"\x80\x80\x80\x80", 0, 0, u + u + u + u, 4},
  };
  for (const auto& c : cases) {
    DOCTEST_CHECK(core::utf8_length(c.text) == c.length);
    DOCTEST_CHECK(core::unfinished_bytes(c.text) == c.unfinished);
    std::uint64_t count = 0;
    DOCTEST_CHECK(core::with_replacements(c.text, count) == c.replaced);
    DOCTEST_CHECK(count == c.count);
    if (c.length < c.text.size()) DOCTEST_CHECK(thrown([&] { read(c.text); }).code == 65);
    else DOCTEST_CHECK(read("\xEF\xBB\xBF" + c.text) == c.text);
  }
  DOCTEST_CHECK(core::what_is_not_utf8("a\xe9z", 1, 10).find("byte 11 (0xe9) is not UTF-8") == 0);
  DOCTEST_CHECK(core::what_is_not_utf8("a\xe9", 1).find("the file ends within a character") !=
                std::string::npos);
}

DOCTEST_TEST_CASE("code points of UTF-8 are counted, and bytes that are none are characters too") {
  DOCTEST_CHECK(core::count_code_points("") == 0);
  DOCTEST_CHECK(core::count_code_points("a\u00e9\u4e2d\U0001F600") == 4);
  const std::string text = "\xC3\xA9\xA9";
  const char *const begin = text.data(), *const end = begin + text.size();
  DOCTEST_CHECK(core::decode_char(begin, end).code_point == 0xE9);
  DOCTEST_CHECK(core::decode_char(begin + 2, end).code_point == core::Char::kInvalid);
  DOCTEST_CHECK(core::previous_char(begin, end) == begin + 2);
  DOCTEST_CHECK(core::previous_char(begin, begin + 2) == begin);
}

DOCTEST_TEST_CASE("files that are no text are known by their beginning, texts are not") {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"\xff\xfe"s, "UTF-16 (little-endian)"},
      {"\xff\xfe\0\0"s, "UTF-32 (little-endian)"},
      {"\xfe\xff"s, "UTF-16 (big-endian)"},
      {"O\0n\0c\0e\0"s, "iconv -f UTF-16LE"},
      {"\0O\0n\0c\0e"s, "iconv -f UTF-16BE"},
      {"O\0\0\0n\0\0\0"s, "iconv -f UTF-32LE"},
      {"\0\0\0O\0\0\0n"s, "iconv -f UTF-32BE"},
      {"BZh91AY&SY", "bzip2"},
      {"%PDF-1.4", "PDF"},
      {"PK\3\4", "zip"},
      {"PAR1\x15\4", "tokenize --format parquet"},
  };
  for (const auto& [start, what] : known)
    DOCTEST_CHECK(core::what_is_no_text(start).find(what) != std::string::npos);
  for (const std::string& text : std::vector{""s, "a"s, "a\0"s, "one\0two\0three\0"s,
           "BZh9 is a name"s, "PDF"s, "\0\0\0\0\0\0\0\0"s, "a\0\0\0\0\0\0\0"s, "PK"s})
    DOCTEST_CHECK(core::what_is_no_text(text).empty());
}

DOCTEST_TEST_CASE("lines that are nearly JSON are mended, and it is told what of them") {
  const auto mended = [](const std::string& line) { return core::mend_json(line).text; };
  // Valid JSON is not changed, and neither is text that cannot be repaired.
  for (const std::string line :
      {R"({"a": [1, -0.5e-3, 18446744073709551615, -9223372036854775808], "b": "\ud83d\ude00\\u"})",
          R"({"NaN": "Infinity \" NaN 1e999"})", "{\"a\": 01, \"b\": 1e, \"c\": .5", "\"open \\",
          "-", "\\ud800"}) {
    DOCTEST_CHECK(mended(line) == line);
    DOCTEST_CHECK(!core::mend_json(line).any());
  }
  DOCTEST_CHECK(mended("[18446744073709551616,-9223372036854775809,1e999,-1e999,1e-999]") ==
                "[9e307,-9e307,9e307,-9e307,1e-999]");
  DOCTEST_CHECK(mended("[NaN, -Infinity,Infinity]") == "[null, null,null]");
  DOCTEST_CHECK(core::mend_json("[-Infinity,NaN]").constant == "-Infinity");
  DOCTEST_CHECK(mended(R"(["\ud83d x", "\udc00\ud83d\ude00", "\ud83d\ud83d\ude00"])") ==
                R"(["\ufffd x", "\ufffd\ud83d\ude00", "\ufffd\ud83d\ude00"])");
  DOCTEST_CHECK(mended("[\"caf\xe9\"]") == "[\"caf\xEF\xBF\xBD\"]");
  const auto in = core::mend_json(R"({"a":"\ud800","b":{"c":"\ud800"},"\ud800":1,"d":"x"})");
  DOCTEST_CHECK(core::has_surrogate(in, "a"));
  DOCTEST_CHECK(core::has_surrogate(in, "b"));
  DOCTEST_CHECK(!core::has_surrogate(in, "d"));
  DOCTEST_CHECK(!core::has_surrogate(in, "e"));
}

DOCTEST_TEST_CASE("a line of JSON: what is used is text, the rest need only be JSON") {
  DOCTEST_CHECK(core::parse_json_line(R"({"a":1e999})", "f")["a"] == 9e307);
  DOCTEST_CHECK(core::parse_json_line(R"({"a":"\ud800","b":1})", "f", {"b"})["b"] == 1);
  const auto refused = [](const std::string& line) {
    return thrown([&] { core::parse_json_line(line, "f:1", {"a"}); });
  };
  DOCTEST_CHECK(refused(R"({"a":"\ud800"})").names("f:1: \"a\" has an unpaired surrogate"));
  DOCTEST_CHECK(refused(R"({"b":NaN})").names("f:1: NaN is not JSON"));
  DOCTEST_CHECK(refused("{\"b\":\"\xff\"}").names("f:1: byte 6 (0xff) is not UTF-8"));
  DOCTEST_CHECK(refused("{\"b\":1e999").names("f:1: not JSON"));
  DOCTEST_CHECK(refused(std::string(2000, '[') + std::string(2000, ']')).code == 65);
  DOCTEST_CHECK(core::member_text(R"({"\ud800":1,"id": 1e999 })", "id") == "1e999");
  for (const char* name : {"a.jsonl", "b/a.ndjson", "a.jsonl.gz", "a.jsonl.xz", "a.ndjson.bz2"})
    DOCTEST_CHECK(core::is_named_json_lines(name));
  for (const char* name : {"a.json", "jsonl", "a.jsonl.gz.zst", "a.jsonl.txt", "-"})
    DOCTEST_CHECK(!core::is_named_json_lines(name));
}
