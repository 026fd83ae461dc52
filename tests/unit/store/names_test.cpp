// Names of a store's documents, after building, adding, removing and merging.

#include "shard/dataset.h"

#include "core/io.h"
#include "store/datastore.h"
#include "store/merge.h"
#include "store/removal.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Names = std::vector<std::string>;

store::Plan named_plan(const std::string& data, const Names& names) {
  auto plan = make_plan("exact", data);
  plan.names = names;
  return plan;
}

Names names_in(const std::filesystem::path& folder) {
  return store::Datastore(folder.string()).names();
}

}  // namespace

DOCTEST_TEST_CASE("documents keep their names through additions and removals") {
  const StoreFolder folder;
  const auto rows = random_rows(100, 1);
  build_store(folder.path, named_plan("a", {"x", "y", ""}), rows, {0, 30, 60});
  DOCTEST_CHECK(names_in(folder.path) == Names{"x", "y", ""});
  DOCTEST_CHECK(core::read_text(folder.path / "names.txt") == "x\ny\n\n");
  DOCTEST_CHECK(store::Datastore(folder.path.string()).context(40, 5).name == "y");
  build_store(folder.path, named_plan("b", {}), rows, {0, 50}, true);
  DOCTEST_CHECK(names_in(folder.path) == Names{"x", "y", "", "", ""});
  build_store(folder.path, named_plan("c", {"\xC3\xA4"}), rows, {0}, true);
  DOCTEST_CHECK(names_in(folder.path) == Names{"x", "y", "", "", "", "\xC3\xA4"});
  store::Removal removal(folder.path, {{0, 3}});
  removal.done();
  DOCTEST_CHECK(names_in(folder.path) == Names{"y", "", "", "\xC3\xA4"});
  DOCTEST_CHECK(store::Datastore(folder.path.string()).context(0, 5).name == "y");
  // No file of an earlier generation remains.
  std::size_t files = 0;
  for (const auto& [name, text] : contents(folder.path)) files += name.starts_with("names");
  DOCTEST_CHECK(files == 1);
}

DOCTEST_TEST_CASE("a store without names has no file of them; one that gets some later has") {
  const StoreFolder folder;
  const auto rows = random_rows(50, 1);
  build_store(folder.path, named_plan("a", {}), rows, {0, 20});
  DOCTEST_CHECK(contents(folder.path).count("names.txt") == 0);
  DOCTEST_CHECK(store::Datastore(folder.path.string()).context(30, 5).name.empty());
  build_store(folder.path, named_plan("b", {"z"}), rows, {0}, true);
  DOCTEST_CHECK(names_in(folder.path) == Names{"", "", "z"});
}

DOCTEST_TEST_CASE("a merged store has the names that its parts have") {
  const StoreFolder folder;
  const auto rows = random_rows(100, 1);
  std::vector<std::string> parts;
  for (const std::uint64_t part : {0, 1}) {
    auto plan = named_plan("a", {"x", "y"});
    plan.part = {part + 1, 2, part * 50, part * 50 + 50};
    StoreRows own;
    own.keys.assign(rows.keys.begin() + std::ptrdiff_t(part * 50 * kStoreWidth),
        rows.keys.begin() + std::ptrdiff_t((part * 50 + 50) * kStoreWidth));
    own.labels.assign(rows.labels.begin() + std::ptrdiff_t(part * 50),
        rows.labels.begin() + std::ptrdiff_t(part * 50 + 50));
    parts.push_back(folder.around / ("part" + std::to_string(part)));
    build_store(parts.back(), plan, own, {0, part == 0 ? 50 : 10});
  }
  store::merge(parts, folder.path, "exact");
  DOCTEST_CHECK(names_in(folder.path) == Names{"x", "y"});
}

DOCTEST_TEST_CASE("damaged names are refused") {
  const StoreFolder folder;
  build_store(folder.path, named_plan("a", {"x", "y"}), random_rows(50, 1), {0, 20});
  core::write_file(folder.path / "names.txt", "x\nz\n");
  DOCTEST_CHECK(thrown([&] { names_in(folder.path); }).names("names.txt: corrupt file"));
  std::filesystem::remove(folder.path / "names.txt");
  DOCTEST_CHECK(thrown([&] { names_in(folder.path); }).code == 66);
  const std::string path = folder.around / "names";
  const auto refused = [&](const std::string& text, std::uint64_t count) {
    core::write_file(path, text);
    return thrown([&] { shard::read_names(path, count, core::hash128(text).hex()); }).code;
  };
  DOCTEST_CHECK(refused("x\ny\n", 2) == 0);
  for (const std::string text : {"", "x\n", "x\ny", "x\ny\nz\n", "x\n\xFF\n"})
    DOCTEST_CHECK(refused(text, 2) == 65);
}
