// A source's shards and their rows, after parts, merging, additions and removals.
#include "core/json.h"
#include "store/merge.h"
#include "store/removal.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // rows, documents

constexpr std::size_t kSourceRows = 600;
const std::vector<std::int64_t> kSourceFirst = {0, 50, 200, 200, 450};

// Documents 0 and 1, none, and 2 to 4.
store::Plan plan_of_shards(const std::string& data = "data") {
  auto plan = make_plan("exact", data);
  plan.shards = {{data + " a", 0, 2}, {data + " none", 0, 0}, {data + " b", 0, 3}};
  return plan;
}

Counts counts_of(const store::Source& source) {
  Counts counts;
  for (const auto& shard : source.shards) counts.emplace_back(shard.rows, shard.documents);
  return counts;
}

StoreRows cut(const StoreRows& rows, std::size_t begin, std::size_t end) {
  return {{rows.keys.begin() + std::ptrdiff_t(begin * kStoreWidth),
              rows.keys.begin() + std::ptrdiff_t(end * kStoreWidth)},
      {rows.labels.begin() + std::ptrdiff_t(begin), rows.labels.begin() + std::ptrdiff_t(end)}};
}

}  // namespace

DOCTEST_TEST_CASE("a source knows the rows of each shard: built, added, written and read") {
  const auto rows = random_rows(kSourceRows, 1);
  const StoreFolder folder;
  build_store(folder.path, plan_of_shards(), rows, kSourceFirst);
  build_store(folder.path, plan_of_shards("more"), rows, kSourceFirst, true);
  const auto there = store::read_manifest(folder.path);
  DOCTEST_REQUIRE(there.sources.size() == 2);
  for (const auto& source : there.sources)
    DOCTEST_CHECK(counts_of(source) == Counts{{200, 2}, {0, 0}, {400, 3}});
  DOCTEST_CHECK(there.sources[1].shards[2].data == "more b");
}

DOCTEST_TEST_CASE("parts have what they have of each shard, and merge into the whole") {
  const auto rows = random_rows(kSourceRows, 2);
  const StoreFolder folder;
  const std::vector<std::size_t> ends = {100, 300, kSourceRows};
  const std::vector<Counts> expected = {
      {{100, 2}, {0, 0}, {0, 3}}, {{100, 2}, {0, 0}, {100, 3}}, {{0, 2}, {0, 0}, {300, 3}}};
  std::vector<std::string> paths;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    auto plan = plan_of_shards();
    plan.part = {paths.size() + 1, ends.size(), begin, end};
    std::vector<std::int64_t> first;
    for (const std::int64_t row : kSourceFirst)
      first.push_back(
          std::clamp(row, std::int64_t(begin), std::int64_t(end)) - std::int64_t(begin));
    paths.push_back(folder.path.parent_path() / ("part." + std::to_string(paths.size())));
    const auto part = build_store(paths.back(), plan, cut(rows, begin, end), first);
    DOCTEST_CHECK(counts_of(part.sources[0]) == expected[paths.size() - 1]);
    begin = end;
  }
  const auto whole = store::merge(paths, folder.path, "exact");
  DOCTEST_CHECK(counts_of(whole.sources[0]) == Counts{{200, 2}, {0, 0}, {400, 3}});
}

DOCTEST_TEST_CASE("what is removed is of no shard any more, and merged entries are counted once") {
  const auto rows = random_rows(kSourceRows, 3);
  const StoreFolder folder;
  build_store(folder.path, plan_of_shards(), rows, kSourceFirst);
  store::Removal(folder.path, {{1, 4}}).done();
  DOCTEST_CHECK(
      counts_of(store::read_manifest(folder.path).sources[0]) == Counts{{50, 1}, {0, 0}, {250, 2}});

  const StoreFolder pruned;
  auto plan = plan_of_shards();
  plan.reduction.merge_neighbours = 20;
  const auto manifest = build_store(pruned.path, plan, rows, kSourceFirst);
  const auto& shards = store::read_manifest(pruned.path).sources[0].shards;
  DOCTEST_CHECK(manifest.rows < kSourceRows);
  DOCTEST_CHECK(shards[0].rows + shards[2].rows == manifest.rows);
}

DOCTEST_TEST_CASE("shards that are not the source are refused") {
  const auto rows = random_rows(kSourceRows, 4);
  const StoreFolder folder;
  const auto manifest = build_store(folder.path, plan_of_shards(), rows, kSourceFirst);
  const auto code_of = [&](const char* key, std::uint64_t value) {
    auto json = store::to_json(manifest);
    json["sources"][0]["shards"][0][key] = value;
    json.erase("hash");
    const auto sealed = core::Json::parse(core::dump(core::sealed(json)));
    return thrown([&] { store::manifest_from(sealed, "store.json"); }).code;
  };
  DOCTEST_CHECK(code_of("rows", 200) == 0);
  DOCTEST_CHECK(code_of("rows", 201) == 65);
  DOCTEST_CHECK(code_of("documents", 1) == 65);
}

DOCTEST_TEST_CASE("a manifest with an impossible value is refused: the value and what is allowed") {
  store::Manifest manifest;
  manifest.generation = 1, manifest.width = 2, manifest.documents = 1;
  const auto says = [&](const char* key, const core::OrderedJson& value, const char* text) {
    auto json = store::to_json(manifest);
    json[key] = value;
    json.erase("hash");
    const auto sealed = core::Json::parse(core::dump(core::sealed(json)));
    const auto failure = thrown([&] { store::manifest_from(sealed, "store.json"); });
    DOCTEST_CHECK(failure.code == 65);
    DOCTEST_CHECK(failure.text.starts_with(text));
  };
  says("generation", 0, "store.json: \"generation\" is 0; allowed: 1 to ");
  says("width", 0, "store.json: \"width\" is 0; allowed: 1 to ");
  says("metric", "cosine", "store.json: \"metric\" is cosine; allowed: ip and l2");
  says("key_scale", 3, "store.json: \"key_scale\" is 3; allowed: 1, 1/2, 1/4, ...");
}

DOCTEST_TEST_CASE("sources that have entries of one shard overlap") {
  const store::Source both{"ab", 9, 2, {}, {}, {{"a", 4, 1}, {"b", 5, 1}}};
  const store::Source one{"b", 5, 1, {}, {}, {{"b", 5, 1}}}, old{"b", 5, 1, {}};
  const store::Source other{"c", 5, 1, {}, {}, {{"c", 5, 1}, {"b", 0, 0}}};
  DOCTEST_CHECK(overlap(both, one));
  DOCTEST_CHECK(overlap(one, both));
  DOCTEST_CHECK(!overlap(both, other));
  DOCTEST_CHECK(overlap(one, old));
  DOCTEST_CHECK(overlap(old, both));
  DOCTEST_CHECK(overlap(both, old));
}
