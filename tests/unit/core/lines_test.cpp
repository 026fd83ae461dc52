// Reading lines as they arrive, and members of JSON objects in their original text.
#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "core/file_text.h"
#include "core/json.h"
#include "core/json_line.h"
#include "unit/thrown.h"

namespace {

core::LineReader reader_of(std::string_view text) {
  return core::LineReader(std::make_unique<core::MemorySource>(text));
}

std::string member(std::string_view object) {
  return core::member_text(object, "id").value_or("none");
}

}  // namespace

DOCTEST_TEST_CASE("lines have no newline, the last may lack it, and a byte order mark is none's") {
  auto lines = reader_of(
      "\xEF\xBB\xBF"
      "a\n\n\xEF\xBB\xBF"
      "b");
  DOCTEST_CHECK(*lines.next() == "a");
  DOCTEST_CHECK(lines.ready());
  DOCTEST_CHECK(*lines.next() == "");
  DOCTEST_CHECK(lines.origin() == "memory:2");
  DOCTEST_CHECK(!lines.ready());  // the last line may be incomplete
  DOCTEST_CHECK(*lines.next() ==
                "\xEF\xBB\xBF"
                "b");
  DOCTEST_CHECK(!lines.next());
  DOCTEST_CHECK(!reader_of("").next());
  const std::string wide((std::size_t{64} << 20) + 2, 'x');
  auto endless = reader_of(wide);
  DOCTEST_CHECK(thrown([&] { endless.next(); }).text == "memory:1: a line longer than 64 MiB");
}

DOCTEST_TEST_CASE("what is there of a line is given before the source ends") {
  int ends[2];
  DOCTEST_REQUIRE(::pipe(ends) == 0);
  core::LineReader lines(core::open_source("/dev/fd/" + std::to_string(ends[0])));
  DOCTEST_REQUIRE(::write(ends[1], "a\nb\nc", 5) == 5);
  DOCTEST_CHECK(*lines.next() == "a");
  DOCTEST_CHECK(lines.ready());
  DOCTEST_CHECK(*lines.next() == "b");
  DOCTEST_CHECK(!lines.ready());
  ::close(ends[1]);
  DOCTEST_CHECK(*lines.next() == "c");
  ::close(ends[0]);
}

DOCTEST_TEST_CASE("a member keeps its digits, its order and its spaces") {
  DOCTEST_CHECK(member(R"({"id":12345678901234567890123})") == "12345678901234567890123");
  DOCTEST_CHECK(member(R"( { "a" : [1, {"id": 2}], "id" : {"z": [ 1 ], "b": "}, \"]"} , "c":0})") ==
                R"({"z": [ 1 ], "b": "}, \"]"})");
  DOCTEST_CHECK(member(R"({"\u0069d": "x\\", "a": "\"id\": 3"})") == R"("x\\")");
  DOCTEST_CHECK(member(R"({"id": 1, "id": [2 ] })") == "[2 ]");
  DOCTEST_CHECK(member(R"({"a": {"id": 1}})") == "none");
  DOCTEST_CHECK(member("{}") == "none");
  DOCTEST_CHECK(core::with_member("id", "1.0", "{}\n") == "{\"id\":1.0}\n");
  DOCTEST_CHECK(core::with_member("id", "[ 2]", "{\"a\":1}") == "{\"id\":[ 2],\"a\":1}");
}
