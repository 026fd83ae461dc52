// Shards that record which part of a command's work they are.

#include "shard/dataset.h"

#include "sample.h"
#include "shard/copy.h"
#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace {

using Provenance = std::vector<core::OrderedJson>;

Provenance made(const std::string& part, int option = 3) {
  core::OrderedJson options{{"min_count", option}};
  if (!part.empty()) options["part"] = part;
  return {shard::provenance_entry("tokenize", options, {core::hash128(std::string_view("in"))})};
}

core::Bytes shard_of(const Provenance& provenance, std::vector<std::uint64_t> documents) {
  core::MemorySink sink;
  shard::Writer writer(sink, sample::ids(300), provenance);
  for (const auto& element : documents) {
    writer.write(std::span(&element, 1));
    writer.end_document(1, 1);
  }
  writer.finish();
  return sink.bytes;
}

struct Folder : TemporaryFolder {
  std::string add(const std::string& name, const core::Bytes& bytes) const {
    core::write_file(path / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return path / name;
  }
};

core::Bytes merged(const std::vector<std::string>& paths) {
  core::MemorySink sink;
  shard::merge(shard::Dataset(paths), sink, 1);
  return sink.bytes;
}

}  // namespace

DOCTEST_TEST_CASE("all parts of a command, in any order, are the shard of one process") {
  const Folder folder;
  const auto whole = shard_of(made(""), {1, 2, 3, 4});
  const auto one = folder.add("one", shard_of(made("1/3"), {1, 2})),
             two = folder.add("two", shard_of(made("2/3"), {})),
             three = folder.add("three", shard_of(made("3/3"), {3, 4}));
  for (const auto& paths : {std::vector{one, two, three}, std::vector{three, one, two}}) {
    DOCTEST_CHECK(merged(paths) == whole);
    const shard::Dataset data(paths);
    DOCTEST_CHECK(data.is_of_parts());
    DOCTEST_CHECK(data.provenance() == made(""));
    DOCTEST_CHECK(data.name() == one + " and 2 more");
  }
  const auto single = folder.add("single", shard_of(made("1/1"), {1, 2, 3, 4}));
  DOCTEST_CHECK(merged({single}) == whole);
}

DOCTEST_TEST_CASE("some parts are one data set in the order given, and no merge takes them") {
  const Folder folder;
  const auto one = folder.add("one", shard_of(made("1/3"), {1, 2})),
             three = folder.add("three", shard_of(made("3/3"), {3, 4})),
             other = folder.add("other", shard_of(made("2/3", 4), {5})),
             plain = folder.add("plain", shard_of(made(""), {6}));
  const shard::Dataset data({three, one});
  DOCTEST_CHECK(!data.is_of_parts());
  DOCTEST_CHECK(data.name() == three + " and 1 more");
  auto error = thrown([&] { merged({three, one}); });
  DOCTEST_CHECK(error.code == 64);
  DOCTEST_CHECK(error.text == three + ": is one of 3 parts, of which part 2 is missing");
  error = thrown([&] { merged({three, one, three}); });
  DOCTEST_CHECK(error.text == three + ": this part is given twice");
  // Parts of two commands, or parts and other shards, are read as ordinary shards and not merged.
  for (const auto& paths : {std::vector{one, other, three}, std::vector{one, plain}}) {
    DOCTEST_CHECK(!shard::Dataset(paths).is_of_parts());
    error = thrown([&] { merged(paths); });
    DOCTEST_CHECK(error.code == 64);
    DOCTEST_CHECK(error.names("belongs to another command than " + one));
  }
}

DOCTEST_TEST_CASE("what says no part, in whatever words, is none") {
  for (const char* text : {"", "launcher", "2", "0/3", "4/3", "1/3x", "1/99999999999999999999"}) {
    auto provenance = made(text);
    DOCTEST_CHECK(!shard::take_part(provenance));
    DOCTEST_CHECK(provenance == made(text));
  }
  for (const char* json :
      {"[]", "[3]", R"([{"options":3}])", R"([{"options":{"part":3}}])", R"([{"part":"1/2"}])"}) {
    Provenance provenance = core::OrderedJson::parse(json);
    DOCTEST_CHECK(!shard::take_part(provenance));
  }
  auto provenance = made("2/3");
  const auto part = shard::take_part(provenance);
  DOCTEST_CHECK(part->index == 1);
  DOCTEST_CHECK(part->count == 3);
}
