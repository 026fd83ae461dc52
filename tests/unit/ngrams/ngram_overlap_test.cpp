// Spans that two texts have in common, compared with examining every pair of places.
#include "ngrams/ngram_overlap.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ngrams_folder.h"

namespace {

using ngrams_test::Documents;
using Tokens = std::vector<std::uint32_t>;

bool stands(const Documents& documents, std::span<const std::uint32_t> tokens) {
  return std::any_of(documents.begin(), documents.end(), [&](const Tokens& text) {
    return std::search(text.begin(), text.end(), tokens.begin(), tokens.end()) != text.end();
  });
}

// Returns every [begin, end) that occurs there and cannot be extended on either side.
std::vector<std::pair<std::uint64_t, std::uint64_t>> plain_spans(
    const Documents& documents, const Tokens& text, std::size_t at_least) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  const std::span<const std::uint32_t> all(text);
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    std::size_t end = begin;
    while (end < text.size() && stands(documents, all.subspan(begin, end + 1 - begin))) ++end;
    const bool longer = begin > 0 && stands(documents, all.subspan(begin - 1, end + 1 - begin));
    if (end - begin >= at_least && !longer) spans.emplace_back(begin, end);
  }
  return spans;
}

}  // namespace

DOCTEST_TEST_CASE("spans are the longest common stretches, up to the ends of documents") {
  const auto known = ngrams_test::documents_of({400, 90, 250}, 6);
  auto text = ngrams_test::documents_of({150}, 6, 8)[0];
  text.insert(text.end(), known[0].begin() + 200, known[0].begin() + 260);
  text.insert(text.end(), known[1].end() - 25, known[1].end());
  text.insert(text.end(), known[2].begin(), known[2].begin() + 20);
  text.push_back(6);
  text.insert(text.end(), known[2].end() - 9, known[2].end());
  const ngrams_test::Folder folder;
  const auto index = std::make_shared<const ngrams::Index>(
      std::vector<std::string>{folder.index("index", known, 6, {220, 80})});
  for (const std::size_t at_least : {1, 3, 5, 9, 30}) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const auto& span : ngrams::spans_of(index, text, at_least)) {
      found.emplace_back(span.begin, span.end);
      DOCTEST_CHECK(ngrams::Index::count(span.match) > 0);
      DOCTEST_CHECK(span.match.length == span.end - span.begin);
    }
    DOCTEST_CHECK(found == plain_spans(known, text, at_least));
  }
  DOCTEST_CHECK(ngrams::spans_of(index, {}, 1).empty());
}

DOCTEST_TEST_CASE(
    "the report counts a token once, and a row is a document with a span, or a span") {
  const auto known = ngrams_test::documents_of({300}, 40);
  const Documents asked = {{known[0].begin() + 10, known[0].begin() + 40}, {1, 2, 3}, {}, known[0]};
  const ngrams_test::Folder folder;
  const auto index = std::make_shared<const ngrams::Index>(
      std::vector<std::string>{folder.index("index", known, 40)});
  const auto data = folder.shard("asked", asked, 40);
  ngrams::OverlapOptions options;
  options.at_least = 20;
  for (const std::int64_t jobs : {1, 3}) {
    const auto report = ngrams::overlap(index, data, options, jobs);
    DOCTEST_CHECK(report.all["documents"] == 4);
    DOCTEST_CHECK(report.all["with_spans"] == 2);
    DOCTEST_CHECK(report.all["known"] == 330);
    DOCTEST_CHECK(report.all["tokens"] == 333);
    DOCTEST_CHECK(report.all["longest"] == 300);
    DOCTEST_REQUIRE(report.rows.size() == 2);
    DOCTEST_CHECK(report.rows[0]["document"] == 0);
    DOCTEST_CHECK(report.rows[1]["share"] == 1.0);
  }
  // Overlapping spans.
  const auto& text = known[0];
  const auto both = std::make_shared<const ngrams::Index>(std::vector<std::string>{folder.index(
      "both", {{text.begin(), text.begin() + 40}, {text.begin() + 20, text.begin() + 60}}, 40)});
  const auto one = folder.shard("one", {{text.begin(), text.begin() + 60}}, 40);
  const auto over = ngrams::overlap(both, one, options, 1);
  DOCTEST_CHECK(over.all["spans"] == 2);
  DOCTEST_CHECK(over.all["known"] == 60);
  options.spans = true;
  const auto report = ngrams::overlap(index, data, options, 1);
  DOCTEST_REQUIRE(report.rows.size() == 2);
  DOCTEST_CHECK(report.rows[0]["there_offset"] == 10);
  DOCTEST_CHECK(report.rows[0]["tokens"] == 30);
}
