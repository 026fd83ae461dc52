#include "cli/summary.h"

#include <doctest/doctest.h>

namespace {

std::string rows(bool json) {
  cli::Context context;
  context.json = json;
  core::MemorySink sink;
  cli::Columns columns(context, sink, {"name", "row", "value"});
  columns.row({"a", 2, 0.1234567});
  columns.row({"b", std::int64_t{3} << 40, 1e-9});
  return std::string(sink.text());
}

}  // namespace

DOCTEST_TEST_CASE("columns: names once and tabs, or an object a line") {
  DOCTEST_CHECK(rows(false) ==
                "name\trow\tvalue\n"
                "a\t2\t0.123457\n"
                "b\t3298534883328\t1e-09\n");
  DOCTEST_CHECK(rows(true) ==
                "{\"name\":\"a\",\"row\":2,\"value\":0.123457}\n"
                "{\"name\":\"b\",\"row\":3298534883328,\"value\":1e-09}\n");
}
