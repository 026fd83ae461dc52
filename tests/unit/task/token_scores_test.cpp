// The per-token file: what was written is read, and damage is found.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "task/token_scores.h"

namespace {

const double kNone = std::numeric_limits<double>::quiet_NaN();

std::string thrown(const std::string& text) {
  try {
    core::MemorySource source(text, "a.tsv");
    task::TokenScoreReader reader(source);
    task::TokenScore score;
    while (reader.next(score)) {}
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == core::Code::bad_data);
    return error.what();
  }
  return {};
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

DOCTEST_TEST_CASE("text of tokens never breaks a line") {
  DOCTEST_CHECK(task::escape_text("a b") == "a b");
  DOCTEST_CHECK(task::escape_text("\t\n\r\\") == "\\t\\n\\r\\\\");
  DOCTEST_CHECK(task::escape_text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") ==
                "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  DOCTEST_CHECK(task::escape_text("\xC3") == "\\xC3");
  DOCTEST_CHECK(task::escape_text(std::string_view("\0\x7F\xC2\x85", 4)) == "\\x00\\x7F\\xC2\\x85");
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string pair = {static_cast<char>(a), static_cast<char>(b), 'x'};
      const std::string text = task::escape_text(pair);
      DOCTEST_REQUIRE(text.find_first_of("\t\n\r") == text.npos);
      DOCTEST_REQUIRE(text.back() == 'x');
    }
  }
}

DOCTEST_TEST_CASE("lines before the heading that begin with # are skipped and counted") {
  core::MemorySink sink;
  task::TokenScore written;
  written.token = 7, written.sources = {1};
  task::TokenScoreWriter(sink, {"cache"}, "eval-ppl 0.1.0 (git 1) data:2").write(written);
  DOCTEST_CHECK(sink.text().starts_with("# eval-ppl 0.1.0 (git 1) data:2\nposition\t"));
  const std::string text = "# more\n" + std::string(sink.text());
  core::MemorySource source(text, "a.tsv");
  task::TokenScoreReader reader(source);
  task::TokenScore score;
  DOCTEST_REQUIRE(reader.next(score));
  DOCTEST_CHECK(score.token == 7);
  DOCTEST_CHECK(reader.line() == 4);
  DOCTEST_CHECK(!reader.next(score));
  DOCTEST_CHECK(has(thrown("# a\nposition\tnats\n"), "a.tsv:2: has no column"));
  DOCTEST_CHECK(has(thrown("# a\n"), "has no heading"));
}

DOCTEST_TEST_CASE("what is written is read") {
  std::vector<task::TokenScore> rows;
  for (std::uint32_t i = 0; i < 9000; ++i)
    rows.push_back({i, i / 70, i * 7 % 300, std::string(i % 40, 'x'), 1, 2,
        {kNone, i % 2 ? 3 : kNone, i % 3 ? 4 : kNone, kNone, kNone}, 0.001 * i});
  core::MemorySink sink;
  task::TokenScoreWriter writer(sink, {"memory", "cache", "stores", "ngrams", "ensemble"});
  for (const auto& row : rows) writer.write(row);
  DOCTEST_CHECK(sink.text().substr(0, 8) == "position");
  DOCTEST_CHECK(has(std::string(sink.text()), "\n1\t0\t7\tx\t1\t2\t-\t3\t4\t-\t-\t0.001\n"));
  core::MemorySource source(sink.text());
  task::TokenScoreReader reader(source);
  task::TokenScore found;
  for (const auto& row : rows) {
    DOCTEST_REQUIRE(reader.next(found));
    DOCTEST_REQUIRE(found.position == row.position);
    DOCTEST_REQUIRE(found.document == row.document);
    DOCTEST_REQUIRE(found.token == row.token);
    DOCTEST_REQUIRE(found.nats == doctest::Approx(row.nats));
  }
  DOCTEST_CHECK(!reader.next(found));
}

DOCTEST_TEST_CASE("a damaged file is named with its line") {
  const std::string heading = "position\tdocument\ttoken\tnats\n";
  DOCTEST_CHECK(thrown(heading + "1\t0\t5\t2.5\n").empty());
  DOCTEST_CHECK(has(thrown(""), "a.tsv: has no heading"));
  DOCTEST_CHECK(has(thrown("position\ttoken\n"), "a.tsv:1: has no column \"document\""));
  DOCTEST_CHECK(has(thrown(heading + "1\t0\t5\n"), "a.tsv:2: nats '' is not a number"));
  DOCTEST_CHECK(has(thrown(heading + "1\t0\tx\t2\n"), "a.tsv:2: token 'x'"));
  DOCTEST_CHECK(has(thrown(heading + "1\t0\t5\tinf\n"), "a.tsv:2: nats is not finite"));
  DOCTEST_CHECK(
      has(thrown(heading + "1\t0\t5\t2\n2\t0\t5\t2"), "a.tsv:3: the last line does not end"));
  DOCTEST_CHECK(has(thrown(std::string(3 << 20, 'a')), "the line does not end"));
}
