// How a text is cut into parts, and what remains of an interrupted build.
#include "ngrams/ngrams_builder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ngrams/ngram_index.h"
#include "ngrams_folder.h"
#include "unit/thrown.h"

namespace {

std::vector<std::uint64_t> ends_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  for (const auto length : lengths) ends.push_back(end += length);
  return ends;
}

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

}  // namespace

DOCTEST_TEST_CASE("no part has documents of two shards; each is cut as if it were alone") {
  core::Rng rng(4);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> lengths, shards;
    std::vector<ngrams::PartFacts> expected;
    const ngrams::Cut cut{30 + rng.below(100), 1 + rng.below(12)};
    std::uint64_t tokens = 0;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
      std::vector<std::uint64_t> own(rng.below(6));
      for (auto& length : own) length = rng.below(3) == 0 ? 0 : rng.below(150);
      for (auto part : ngrams::plan_parts(ends_of(own), cut)) {
        part.begin += tokens, part.end += tokens, part.until += tokens;
        part.document += lengths.size();
        expected.push_back(part);
      }
      lengths.insert(lengths.end(), own.begin(), own.end());
      for (const auto length : own) tokens += length;
      shards.push_back(own.size());
    }
    const auto parts = ngrams::plan_parts(ends_of(lengths), cut, shards);
    DOCTEST_REQUIRE(parts.size() == expected.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      DOCTEST_CHECK(parts[p].begin == expected[p].begin);
      DOCTEST_CHECK(parts[p].end == expected[p].end);
      DOCTEST_CHECK(parts[p].until == expected[p].until);
      DOCTEST_CHECK(parts[p].document == expected[p].document);
      DOCTEST_CHECK(parts[p].marks == expected[p].marks);
    }
  }
}

DOCTEST_TEST_CASE(
    "parts are the whole text in order, none too large; only what is too long is cut") {
  core::Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> lengths;
    for (std::uint64_t n = 1 + rng.below(12); n > 0; --n)
      lengths.push_back(rng.below(4) == 0 ? 0 : rng.below(rng.below(5) == 0 ? 500 : 60));
    const auto ends = ends_of(lengths);
    const ngrams::Cut cut{30 + rng.below(100), 1 + rng.below(12)};
    std::uint64_t end = 0;
    for (const auto& part : ngrams::plan_parts(ends, cut)) {
      DOCTEST_CHECK(part.begin == end);
      DOCTEST_CHECK(part.elements() <= cut.elements);
      end = part.end;
      // The part's documents, each followed by a mark.
      const auto begin = part.document == 0 ? 0 : ends[part.document - 1];
      DOCTEST_CHECK(begin <= part.begin);
      const auto last = part.document + part.marks - 1;
      DOCTEST_REQUIRE(last < ends.size());
      if (part.until == part.end) {
        DOCTEST_CHECK(ends[last] == part.end);
      } else {
        DOCTEST_CHECK(part.marks == 1);
        DOCTEST_CHECK(part.until == part.end + cut.overlap);
        DOCTEST_CHECK(part.until < ends[last]);
        DOCTEST_CHECK(lengths[last] + 1 > cut.elements);
      }
    }
    DOCTEST_CHECK(end == ends.back());
  }
}

DOCTEST_TEST_CASE("stopped after any part, the same command goes on to the same files") {
  const auto documents = ngrams_test::documents_of({300, 200, 700, 50}, 9);
  const ngrams_test::Folder folder;
  const auto data = folder.shard("text", documents, 9);
  const ngrams::Cut cut{260, 20};
  const std::string whole = folder.path / "whole";
  const auto built = ngrams::build(data, whole, cut, 2);
  DOCTEST_CHECK(!built.was_complete);
  const std::size_t parts = built.manifest.parts.size();
  DOCTEST_REQUIRE(parts > 3);
  for (std::size_t stop = 0; stop <= parts; ++stop) {
    const std::string other = folder.path / ("stopped." + std::to_string(stop));
    std::size_t said = 0;
    const auto stopped = thrown([&] {
      ngrams::build(data, other, cut, 1, [&](std::uint64_t) {
        if (said++ == stop) core::fail(core::Code::stopped, "enough");
      });
    });
    DOCTEST_CHECK(stopped.code == static_cast<int>(core::Code::stopped));
    DOCTEST_CHECK(thrown([&] { ngrams::read_manifest(other); }).names("not complete"));
    // Another text is refused, and the parts keep their cuts.
    const auto foreign = folder.shard("foreign", {documents[1]}, 9);
    DOCTEST_CHECK(thrown([&] { ngrams::build(foreign, other, cut, 1); }).names("another text"));
    std::uint64_t first = 0;
    ngrams::build(data, other, {900, 20}, 1, [&, begun = false](std::uint64_t done) mutable {
      if (!std::exchange(begun, true)) first = done;
    });
    DOCTEST_CHECK((first > 0) == (stop > 0));
    DOCTEST_CHECK(files_of(other) == files_of(whole));
    DOCTEST_CHECK(ngrams::build(data, other, cut, 1).was_complete);
  }
}

DOCTEST_TEST_CASE("what is no text of tokens is refused") {
  const ngrams_test::Folder folder;
  const std::string index = folder.path / "index";
  DOCTEST_CHECK(thrown([&] {
    ngrams::build(folder.shard("a", {{}}, 9), index, {260, 20}, 1);
  }).names("no tokens"));
  DOCTEST_CHECK(!std::filesystem::exists(index));
  std::filesystem::create_directories(index);
  std::ofstream(index + "/notes.txt") << "mine";
  const auto data = folder.shard("b", {{1, 2, 3}}, 9);
  const auto full = thrown([&] { ngrams::build(data, index, {260, 20}, 1); });
  DOCTEST_CHECK(full.code == static_cast<int>(core::Code::cannot_create));
  DOCTEST_CHECK(full.names("notes.txt"));
  ngrams::BuildOptions options;
  options.memory = 1 << 20;
  DOCTEST_CHECK(options.cut(50257, 1).elements == (1 << 20) / 10);
  DOCTEST_CHECK(options.cut(50257, 2).elements == (1 << 19) / 10);
  DOCTEST_CHECK(options.cut(200, 1).elements == (1 << 20) / 5);
  DOCTEST_CHECK(options.cut(128000, 1).elements == (1 << 20) / 15);
  DOCTEST_CHECK(thrown([&] { options.cut(50257, 64); }).names("--buffer-size"));
  options.memory = std::int64_t{1} << 46;
  DOCTEST_CHECK(options.cut(200, 1).elements == (std::uint64_t{1} << 31) - 1);
}
