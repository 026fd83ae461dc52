// A set of sequences does not depend on its division into parts or on the number of threads.

#include "task/regbench.h"

#include <doctest/doctest.h>

#include "unit/thrown.h"

namespace {

struct Made {
  std::string bytes, lines;
  std::uint64_t told = 0;
};

Made make(const task::RegbenchSet& set, int jobs) {
  core::MemorySink sink;
  shard::Header header;
  header.vocabulary = task::kRegbenchTypes;
  header.dtype = shard::dtype_for(header.vocabulary);
  shard::Writer writer(sink, header);
  Made made;
  task::make_sequences(
      set, 5, jobs, writer, [&](const std::string& lines) { made.lines += lines; },
      [&](std::uint64_t done) { made.told = done; });
  writer.finish();
  made.bytes = sink.text();
  return made;
}

}  // namespace

DOCTEST_TEST_CASE("sequences do not depend on the jobs, and parts have the numbers they say") {
  task::RegbenchSet set;
  set.count = 600;
  const Made one = make(set, 1), many = make(set, 3);
  DOCTEST_CHECK(one.bytes == many.bytes);
  DOCTEST_CHECK(one.lines == many.lines);
  DOCTEST_CHECK(one.told == 600);
  task::RegbenchSet part = set;
  part.first = 500, part.count = 100;
  const std::string rest = make(part, 2).lines;
  DOCTEST_CHECK(rest.starts_with("{\"sequence\":500,\"automaton\":500,"));
  DOCTEST_CHECK(one.lines.ends_with(rest));
  // Shared automata, and a split of its own.
  part.environments = 7;
  DOCTEST_CHECK(make(part, 1).lines.starts_with("{\"sequence\":500,\"automaton\":3,"));
  part.split = "test";
  DOCTEST_CHECK(make(part, 1).lines != make(set, 1).lines);
}

DOCTEST_TEST_CASE("a set that contradicts itself; what it depends on") {
  task::RegbenchSet set;
  set.check();
  DOCTEST_CHECK(core::dump(set.changes(9)).ends_with("\"longest_word\":49,\"seed\":9}"));
  set.split = "iid";
  DOCTEST_CHECK(thrown([&] { set.check(); }).names("--environments"));
  set.environments = 3, set.shape.most_words = 2;
  DOCTEST_CHECK(thrown([&] { set.check(); }).names("--most-words"));
}
