// From shards to an order of their units.

#include "passages/pack_data.h"

#include <filesystem>
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
      passages::find_hits(in, bm25, by_document(), passages::queries_of(lists.size()), 1, nobody);
  DOCTEST_CHECK(all.queries == std::vector<std::uint32_t>{0, 1, 2, 3});
  DOCTEST_CHECK(all.parts == 1);
  DOCTEST_CHECK(all.timings()["queries"] == 4);
  core::MemorySink lines;
  passages::print_hits(all, lines);
  DOCTEST_CHECK(lines.text().substr(0, 4) == "0\t0\t");
  // Some queries, drawn by the seed: each line begins with the number of the query's unit.
  const auto some =
      passages::find_hits(in, bm25, by_document(), passages::queries_of(4, {}, 2, 7), 1, nobody);
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
        passages::find_hits(in, bm25, options, passages::queries_of(lists.size()), 1, nobody);
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
    DOCTEST_CHECK(said.contains("k") == searched);
    DOCTEST_CHECK(said.contains("seed") == (options.method != "paths"));
    const auto figures = packed.figures("document", bm25, searched, fingerprint);
    DOCTEST_CHECK(figures["documents"] == 4);
    DOCTEST_CHECK(figures.contains("links") == searched);
    DOCTEST_CHECK(packed.summary("document", searched).find("4 documents") == 0);
  }
}

DOCTEST_TEST_CASE("units of the same documents are those that share one, by all pairs of tokens") {
  // Documents of 5, 1, 0, 9, 2, 2 and 8 bytes; 27 tokens.
  const sample::Shard text("abcde\nf\n\nghijklmno\npq\nrs\ntuvwxyza\n");
  const shard::Dataset data({text.path});
  std::vector<std::size_t> document_of;
  for (std::size_t d = 0; d < data.documents().size(); ++d)
    while (document_of.size() < data.documents().end[d]) document_of.push_back(d);
  DOCTEST_REQUIRE(document_of.size() == 27);
  for (const std::uint64_t length : {1, 2, 3, 4, 7, 40}) {
    const auto same = passages::units_of_same_documents(data, {"segment", length});
    const auto n = (document_of.size() + length - 1) / length;
    DOCTEST_REQUIRE(same.size() == n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) {
        bool shared = false;
        for (std::size_t i = 0; i < document_of.size(); ++i)
          for (std::size_t j = 0; j < document_of.size(); ++j)
            shared |= i / length == a && j / length == b && document_of[i] == document_of[j];
        DOCTEST_CHECK((same[a].begin <= b && b < same[a].end) == shared);
      }
  }
  const auto own = passages::units_of_same_documents(data, {"document", 0});
  DOCTEST_REQUIRE(own.size() == 7);
  DOCTEST_CHECK((own[3].begin == 3 && own[3].end == 4));
}

DOCTEST_TEST_CASE("hits of other documents alone, and the shard says so") {
  // Each topic is a document of several segments, whose best hits are in the same document.
  const sample::Shard text(
      "cats purr softly and cats purr\nrockets launch and cats rest\ncats launch rockets\n");
  passages::PackOptions options;
  options.segment = 10, options.top = 4;
  for (const bool others : {false, true}) {
    options.other_documents = others;
    const auto in = passages::open_packing({text.path}, options);
    const auto lists = passages::list_terms(in, options, 1, nobody);
    const passages::Bm25 bm25(lists, {});
    const auto found =
        passages::find_hits(in, bm25, options, passages::queries_of(lists.size()), 1, nobody);
    const auto same = passages::units_of_same_documents(in.data, in.unit);
    std::size_t own = 0, other = 0;
    for (std::uint32_t unit = 0; unit < lists.size(); ++unit)
      for (const auto& hit : found.hits.of(unit))
        ++(hit.unit >= same[unit].begin && hit.unit < same[unit].end ? own : other);
    DOCTEST_CHECK((own > 0) != others);
    DOCTEST_CHECK(other > 0);
    const auto packed = passages::pack(in, bm25, &found, options, 1, 1);
    core::Output out(text.folder / "order");
    passages::write_order(packed.order, in, options, 1, out);
    out.commit();
    const shard::Dataset order({text.folder / "order"});
    DOCTEST_CHECK(order.provenance()[0]["options"].contains("other_documents") == others);
    std::filesystem::remove(text.folder / "order");
  }
}

DOCTEST_TEST_CASE("data that have nothing to order") {
  const sample::Shard apart("alpha\nbeta\ngamma\n");
  const auto in = passages::open_packing({apart.path}, by_document());
  const auto lists = passages::list_terms(in, by_document(), 1, nobody);
  const passages::Bm25 bm25(lists, {});
  const auto found =
      passages::find_hits(in, bm25, by_document(), passages::queries_of(lists.size()), 1, nobody);
  DOCTEST_CHECK(thrown([&] { passages::pack(in, bm25, &found, by_document(), 1, 1); }).code == 65);
  auto pairs = by_document();
  pairs.unit = "pair";
  DOCTEST_CHECK(thrown([&] { passages::open_packing({apart.path}, pairs); }).code == 64);
  auto others = by_document();
  others.other_documents = true;
  const sample::Shard one("alpha beta\n");
  DOCTEST_CHECK(thrown([&] { passages::open_packing({one.path}, others); }).code == 65);
  const sample::Shard nothing("");
  DOCTEST_CHECK(thrown([&] { passages::open_packing({nothing.path}, by_document()); }).code == 65);
}
