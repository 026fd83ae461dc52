// Stores of --keys none: they answer as stores with keys do, and refuse what needs keys.

#include <doctest/doctest.h>

#include "store/care.h"
#include "store/datastore.h"
#include "store/merge.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

namespace {

namespace fs = std::filesystem;

store::Plan keyless_plan(const std::string& index) {
  auto plan = make_plan(index);
  plan.reduction.drop_keys = true;
  return plan;
}

// Returns the messages of the work, of which none may be done, and checks that each names the
// store and the reason in one line.
void expect_refused(const std::string& folder, const std::function<void()>& work) {
  const auto error = thrown(work);
  DOCTEST_CHECK(error.code == 64);
  DOCTEST_CHECK_MESSAGE(error.names(folder + ": its keys were not kept (--keys none)"), error.text);
  DOCTEST_CHECK(!error.names("\n"));
}

}  // namespace

DOCTEST_TEST_CASE("a store without keys finds what the store with keys finds, and is smaller") {
  const auto rows = random_rows(1500, 21), asked = random_rows(20, 22);
  for (const std::string index : {"IVF4,SQ8", "IVF8,PQ4x4", "Flat"})
    for (const std::uint64_t merged : {0, 3}) {
      DOCTEST_CAPTURE(index);
      DOCTEST_CAPTURE(merged);
      const StoreFolder with, without;
      auto all = make_plan(index), none = keyless_plan(index);
      all.reduction.merge_neighbours = none.reduction.merge_neighbours = merged;
      build_store(with.path, all, rows, {0, 100, 900});
      const auto manifest = build_store(without.path, none, rows, {0, 100, 900});
      DOCTEST_CHECK(!manifest.keyed());
      // All files but the keys, and store.json, have the same bytes.
      auto files = contents(with.path);
      const std::string keys = store::read_manifest(with.path).keys_file;
      DOCTEST_CHECK(files.erase(keys) == 1);
      files["store.json"] = core::read_text(without.path / "store.json");
      DOCTEST_CHECK(contents(without.path) == files);

      const store::Datastore opened(without.path), keyed(with.path);
      DOCTEST_CHECK(opened.fingerprint() == keyed.fingerprint());
      DOCTEST_CHECK(opened.manifest().recall.recall == keyed.manifest().recall.recall);
      const store::SearchOptions options{.k = 30, .nprobe = 2};
      const auto found = opened.search(asked.keys, options);
      const auto expected = keyed.search(asked.keys, options);
      DOCTEST_CHECK(found.ids == expected.ids);
      DOCTEST_CHECK(found.scores == expected.scores);
      DOCTEST_CHECK(found.labels == expected.labels);
      DOCTEST_CHECK(found.weights == expected.weights);
      const auto row = static_cast<std::int64_t>(opened.size() - 1);
      DOCTEST_CHECK(opened.context(row, 5).before == keyed.context(row, 5).before);

      const auto told = store::info(without.path).report;
      DOCTEST_CHECK(told["keys"] == "none");
      DOCTEST_CHECK(store::info(with.path).report["keys"] == "all");
      store::verify(without.path);
      DOCTEST_CHECK(core::dump(store::to_json(store::manifest_from(
                        core::parse_json(core::dump(store::to_json(manifest)), "s"), "s"))) ==
                    core::dump(store::to_json(manifest)));
    }
}

DOCTEST_TEST_CASE("whatever needs keys refuses a store without them, and leaves it as it is") {
  const StoreFolder folder;
  const auto rows = random_rows(600, 23);
  build_store(folder.path, keyless_plan("IVF4,SQ8"), rows, {0, 300});
  const auto before = contents(folder.path);
  const std::string path = folder.path;
  const store::Datastore opened(path);
  const std::span query(rows.keys.data(), kStoreWidth);
  std::vector<float> scores(1);
  std::vector<std::int32_t> labels(1);
  const std::vector<std::int64_t> first{0};
  const std::vector<std::function<void()>> all{
      [&] { opened.search(query, {.k = 3, .rescore = true}); },
      [&] { opened.search_exactly(query, {.k = 3}); },
      [&] { store::Datastore::without_index(path).search(query, {.k = 3}); },
      [&] { opened.score(query, first, scores, labels); }, [&] { opened.expect_followable(); },
      [&] { (void)opened.after(0); }, [&] { (void)opened.keys(); },
      [&] { store::recalled(path, {}); }, [&] { store::rebuild_index(path, "IVF4,Flat"); },
      [&] { store::Removal(path, {{1}}); },
      [&] { store::merge({path}, folder.path.parent_path() / "merged", "IVF4,SQ8"); }};
  for (const auto& work : all) expect_refused(path, work);
  for (const bool keyed : {false, true}) {
    const StoreFolder other;
    if (keyed) build_store(other.path, make_plan("IVF4,SQ8"), rows, {0});
    auto more = keyed ? keyless_plan("IVF4,SQ8") : make_plan("IVF4,SQ8");
    more.data = "more";
    const auto error = thrown([&] {
      store::Builder{keyed ? std::string(other.path) : path, more, true};
    });
    DOCTEST_CHECK(error.code == 64);
    DOCTEST_CHECK_MESSAGE(error.names("--append cannot be combined with --keys none"), error.text);
  }
  // A store with keys is not rebuilt as one without, nor the other way.
  DOCTEST_CHECK(thrown([&] { store::Builder{path, make_plan("IVF4,SQ8"), false}; }).code == 64);
  DOCTEST_CHECK(store::Builder(path, keyless_plan("IVF4,SQ8"), false).complete());
  DOCTEST_CHECK(contents(folder.path) == before);
}

DOCTEST_TEST_CASE(
    "a store without keys is rescored from a store with the same keys, linked or not") {
  const StoreFolder with, without, others, more;
  const auto rows = random_rows(900, 28), asked = random_rows(5, 29);
  build_store(with.path, make_plan("IVF4,SQ8"), rows, {0, 300});
  build_store(without.path, keyless_plan("IVF4,SQ8"), rows, {0, 300});
  const store::SearchOptions options{.k = 20, .nprobe = 4, .rescore = true};
  const auto expected = store::Datastore(with.path).search(asked.keys, options);
  const fs::path link = without.path / store::kKeysLink;
  fs::create_directory_symlink(with.path, link);
  const auto found = store::Datastore(without.path).search(asked.keys, options);
  DOCTEST_CHECK(found.ids == expected.ids);
  DOCTEST_CHECK(found.scores == expected.scores);
  // Only rescoring uses them, and the link stays.
  const std::string path = without.path;
  expect_refused(path, [&] { store::Datastore(path).search_exactly(asked.keys, {.k = 3}); });
  expect_refused(path, [&] { store::rebuild_index(path, "IVF4,Flat"); });
  DOCTEST_CHECK(store::Builder(path, keyless_plan("IVF4,SQ8"), false).complete());
  DOCTEST_CHECK(fs::is_symlink(link));
  // Keys of other rows, no keys, no store.
  build_store(others.path, make_plan(), random_rows(900, 30), {0, 300});
  build_store(more.path, make_plan(), random_rows(901, 28), {0, 300});
  for (const auto& wrong : {others.path, more.path, without.path, without.path / "none"}) {
    fs::remove(link);
    fs::create_directory_symlink(wrong, link);
    const auto error = thrown([&] { store::Datastore{path}; });
    DOCTEST_CHECK(error.code == (wrong == without.path / "none" ? 66 : 65));
    DOCTEST_CHECK(error.names(link.string()));
  }
}

DOCTEST_TEST_CASE("without keys a store has an index, whatever the number of its rows") {
  const auto error = thrown([&] { store::expect_possible(keyless_plan("exact"), 65'536); });
  DOCTEST_CHECK(error.code == 64);
  DOCTEST_CHECK_MESSAGE(error.names("--keys none: "), error.text);
  DOCTEST_CHECK(error.names("--index"));
  DOCTEST_CHECK(thrown([&] { store::expect_possible(keyless_plan(""), 0); }).code == 64);
  store::expect_possible(keyless_plan(""), 1);
  store::expect_possible(keyless_plan("IVF4,SQ8"), 100);
  const StoreFolder folder;
  const auto rows = random_rows(50, 24);
  DOCTEST_CHECK(build_store(folder.path, keyless_plan(""), rows, {0}).index == "SQ8");
  DOCTEST_CHECK(!fs::exists(folder.path / "keys.npy"));
  // The codes find what the keys find, except where two rows are nearly as near.
  const StoreFolder keyed;
  build_store(keyed.path, make_plan(), rows, {0});
  const store::SearchOptions nearest{.k = 1};
  const auto found = store::Datastore(folder.path).search(rows.keys, nearest),
             expected = store::Datastore(keyed.path).search(rows.keys, nearest);
  std::size_t equal = 0;
  for (std::size_t row = 0; row < 50; ++row) equal += found.ids[row] == expected.ids[row] ? 1 : 0;
  DOCTEST_CHECK(equal >= 48);
}

DOCTEST_TEST_CASE("a build without keys resumes, and removes the keys that a crash left behind") {
  const auto rows = random_rows(700, 25);
  const auto plan = keyless_plan("IVF4,SQ8");
  const StoreFolder whole;
  build_store(whole.path, plan, rows, {0});
  const StoreFolder folder;
  int stops = 0;
  for (;; ++stops) {  // one step further each time
    int steps = 0;
    const auto stopped = thrown([&] {
      store::Builder builder(folder.path, plan, false);
      if (builder.rows() == 0) {
        builder.add(rows.keys, rows.labels);
        builder.commit(nullptr);
      }
      builder.finish(std::vector<std::int64_t>{0}, [&](const auto&...) {
        if (steps++ == stops) core::fail(core::Code::stopped, "stopped");
      });
    });
    if (stopped.code == 0) break;
    DOCTEST_REQUIRE(stopped.code == 75);
    DOCTEST_CHECK(fs::exists(folder.path / "keys.npy"));
    const auto other = thrown([&] { store::Builder{folder.path, make_plan("IVF4,SQ8"), false}; });
    DOCTEST_CHECK(other.code == 64);
    DOCTEST_CHECK_MESSAGE(other.names("--keys none, now none"), other.text);
  }
  DOCTEST_CHECK(stops >= 2);
  DOCTEST_CHECK(contents(folder.path) == contents(whole.path));
  // As after a crash between the commit and the removal.
  core::write_file(folder.path / "keys.npy", "left behind");
  DOCTEST_CHECK(store::Builder(folder.path, plan, false).complete());
  DOCTEST_CHECK(contents(folder.path) == contents(whole.path));
}

DOCTEST_TEST_CASE("store merge --keys none makes the store of one process without keys") {
  const auto rows = random_rows(500, 26);
  const StoreFolder whole, folder;
  build_store(whole.path, keyless_plan("IVF4,SQ8"), rows, {0, 200});
  std::vector<std::string> parts;
  for (const std::size_t begin : {0, 250}) {
    auto plan = make_plan();
    plan.part = {parts.size() + 1, 2, begin, begin + 250};
    StoreRows own{{rows.keys.begin() + std::ptrdiff_t(begin * kStoreWidth),
                      rows.keys.begin() + std::ptrdiff_t((begin + 250) * kStoreWidth)},
        {rows.labels.begin() + std::ptrdiff_t(begin),
            rows.labels.begin() + std::ptrdiff_t(begin + 250)}};
    parts.push_back(folder.path.parent_path() / ("part." + std::to_string(begin)));
    build_store(parts.back(), plan, own,
        begin == 0 ? std::vector<std::int64_t>{0, 200} : std::vector<std::int64_t>{0, 0});
  }
  const auto how = store::parse_reduction("none", "none");
  store::merge(parts, folder.path, "IVF4,SQ8", {}, how);
  DOCTEST_CHECK(contents(folder.path) == contents(whole.path));
  const auto chosen = store::merge(parts, folder.path.parent_path() / "chosen", "", {}, how);
  DOCTEST_CHECK(chosen.index == "SQ8");
  DOCTEST_CHECK(!chosen.keyed());
}

DOCTEST_TEST_CASE(
    "a store.json without keys is refused unless it has an index and a hash of labels") {
  const StoreFolder folder;
  build_store(folder.path, keyless_plan("IVF4,SQ8"), random_rows(300, 27), {0});
  const auto refused = [&](const std::function<void(core::OrderedJson&)>& change) {
    auto json = store::to_json(store::read_manifest(folder.path));
    json.erase("hash");
    change(json);
    const auto text = core::dump(core::sealed(json));
    return thrown([&] { store::manifest_from(core::parse_json(text, "s"), "s"); }).code;
  };
  DOCTEST_CHECK(refused([](auto&) {}) == 0);
  DOCTEST_CHECK(refused([](auto& json) { json.erase("values_hash"); }) == 65);
  DOCTEST_CHECK(refused([](auto& json) { json["files"]["keys"] = ""; }) == 65);
  DOCTEST_CHECK(refused([](auto& json) { json["files"]["keys"] = "../keys.npy"; }) == 65);
  DOCTEST_CHECK(
      refused([](auto& json) { json["index"] = "exact", json["files"]["index"] = ""; }) == 65);
  // Without keys, store verify finds damaged labels by their own hash.
  std::string values = core::read_text(folder.path / "values.npy");
  values[store::kNpyHeaderBytes] = static_cast<char>(values[store::kNpyHeaderBytes] ^ 1);
  core::write_file(folder.path / "values.npy", values);
  const auto damaged = thrown([&] { store::verify(folder.path); });
  DOCTEST_CHECK(damaged.code == 65);
  DOCTEST_CHECK(damaged.names("values.npy"));
}
