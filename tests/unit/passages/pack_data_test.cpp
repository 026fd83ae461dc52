// From shards to an order of their units.

#include "passages/pack_data.h"

#include <set>

#include "unit/text/sample_shard.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

passages::PackOptions by_document() {
  passages::PackOptions options;
  options.unit = "document", options.top = 3;
  return options;
}

void nobody(std::uint64_t /*done*/) {}

const std::string kTwoTopics =
    "cats purr softly\nrockets launch loudly\ncats purr again\nrockets launch again\n";

}  // namespace

DOCTEST_TEST_CASE("units, terms and hits of a shard, as text") {
  const sample::Shard text(kTwoTopics);
  const auto in = passages::open_packing({text.path}, by_document());
  DOCTEST_CHECK(in.unit.name == "document");
  DOCTEST_CHECK(in.units() == 4);
  core::MemorySink terms;
  passages::print_terms(in, 1, terms);
  DOCTEST_CHECK(terms.text() ==
                "cat purr softli\nrocket launch loudli\ncat purr again\nrocket launch again\n");
  const auto lists = passages::list_terms(in, by_document(), 1, nobody);
  const passages::Bm25 bm25(lists, {});
  const auto all =
      passages::find_hits(bm25, by_document(), passages::queries_of(lists.size()), 1, nobody);
  DOCTEST_CHECK(all.queries == std::vector<std::uint32_t>{0, 1, 2, 3});
  DOCTEST_CHECK(all.parts == 1);
  DOCTEST_CHECK(all.timings()["queries"] == 4);
  core::MemorySink lines;
  passages::print_hits(all, lines);
  DOCTEST_CHECK(lines.text().substr(0, 4) == "0\t0\t");
  // Some, drawn by the seed: each line begins with the number of the unit that asked.
  const auto some =
      passages::find_hits(bm25, by_document(), passages::queries_of(4, {}, 2, 7), 1, nobody);
  DOCTEST_CHECK(std::set<std::uint32_t>(some.queries.begin(), some.queries.end()).size() == 2);
  DOCTEST_CHECK(some.hits.of(0)[0].unit == some.queries[0]);
}

DOCTEST_TEST_CASE("every method orders all units, and the shard says how") {
  const sample::Shard text(kTwoTopics);
  for (const char* method : {"greedy", "paths", "random"}) {
    auto options = by_document();
    options.method = method;
    const auto in = passages::open_packing({text.path}, options);
    const auto lists = passages::list_terms(in, options, 1, nobody);
    const passages::Bm25 bm25(lists, {});
    const auto found =
        passages::find_hits(bm25, options, passages::queries_of(lists.size()), 1, nobody);
    const bool searched = options.searches();
    const auto packed = passages::pack(in, bm25, searched ? &found : nullptr, options, 5, 1);
    DOCTEST_CHECK(std::set<std::uint32_t>(packed.order.begin(), packed.order.end()).size() == 4);
    if (searched) DOCTEST_CHECK(packed.worth.links >= 2);
    const std::string path = text.folder / method;
    core::Output out(path);
    const auto fingerprint = passages::write_order(packed.order, in, options, 5, out);
    out.commit();
    const shard::Dataset order({path});
    DOCTEST_CHECK(order.fingerprint() == fingerprint);
    DOCTEST_CHECK(order.header().unit == "document");
    DOCTEST_CHECK(order.header().unit_length == 0);
    DOCTEST_CHECK(order.header().data_fingerprint == in.data.fingerprint().hex());
    const auto& said = order.provenance()[0]["options"];
    DOCTEST_CHECK(said["method"] == method);
    DOCTEST_CHECK(said.contains("top") == searched);
    DOCTEST_CHECK(said.contains("seed") == (options.method != "paths"));
    const auto figures = packed.figures("document", bm25, searched, fingerprint);
    DOCTEST_CHECK(figures["documents"] == 4);
    DOCTEST_CHECK(figures.contains("links") == searched);
    DOCTEST_CHECK(packed.summary("document", searched).find("4 documents") == 0);
  }
}

DOCTEST_TEST_CASE("data that have nothing to order") {
  const sample::Shard apart("alpha\nbeta\ngamma\n");
  const auto in = passages::open_packing({apart.path}, by_document());
  const auto lists = passages::list_terms(in, by_document(), 1, nobody);
  const passages::Bm25 bm25(lists, {});
  const auto found =
      passages::find_hits(bm25, by_document(), passages::queries_of(lists.size()), 1, nobody);
  DOCTEST_CHECK(thrown([&] { passages::pack(in, bm25, &found, by_document(), 1, 1); }).code == 65);
  auto pairs = by_document();
  pairs.unit = "pair";
  DOCTEST_CHECK(thrown([&] { passages::open_packing({apart.path}, pairs); }).code == 64);
  const sample::Shard nothing("");
  DOCTEST_CHECK(thrown([&] { passages::open_packing({nothing.path}, by_document()); }).code == 65);
}
