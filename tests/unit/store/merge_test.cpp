// Stores of parts, and the store that they are together.

#include "store/merge.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "core/io.h"
#include "store/datastore.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRows = 700;
const std::vector<std::int64_t> kFirst = {0, 0, 100, 400, 400, 700};  // of documents

// A store of each part, which end at rows `ends`, in a temporary folder.
struct Parts {
  StoreFolder folder;
  std::vector<std::string> paths;
  explicit Parts(const std::vector<std::size_t>& ends, const StoreRows& rows,
      const store::Plan& all = make_plan()) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      auto plan = all;
      plan.part = {paths.size() + 1, ends.size(), begin, end};
      StoreRows own;
      own.keys.assign(rows.keys.begin() + std::ptrdiff_t(begin * kStoreWidth),
          rows.keys.begin() + std::ptrdiff_t(end * kStoreWidth));
      own.labels.assign(
          rows.labels.begin() + std::ptrdiff_t(begin), rows.labels.begin() + std::ptrdiff_t(end));
      std::vector<std::int64_t> first;
      for (const std::int64_t row : kFirst)
        first.push_back(
            std::clamp(row, std::int64_t(begin), std::int64_t(end)) - std::int64_t(begin));
      paths.push_back(folder.path.parent_path() / ("part." + std::to_string(paths.size())));
      build_store(paths.back(), plan, own, first);
      begin = end;
    }
  }
  std::string at(const std::string& name) const { return folder.path.parent_path() / name; }
};

}  // namespace

DOCTEST_TEST_CASE("parts merge into the store of one process, file by file, whatever the index") {
  const auto rows = random_rows(kRows, 1);
  for (const std::string index : {"exact", "", "Flat", "IVF8,PQ8x4fs"}) {
    const StoreFolder whole;
    build_store(whole.path, make_plan(index), rows, kFirst);
    for (const auto& ends : {std::vector<std::size_t>{700}, {1, 700}, {0, 399, 399, 401, 700}}) {
      Parts parts(ends, rows);
      std::reverse(parts.paths.begin(), parts.paths.end());
      const auto manifest = store::merge(parts.paths, parts.folder.path, index);
      DOCTEST_CHECK(manifest.rows == kRows);
      DOCTEST_CHECK(contents(parts.folder.path) == contents(whole.path));
      // After completion, rerunning does nothing, and neither does rerunning the command of one
      // process.
      store::merge(parts.paths, parts.folder.path, index,
          [](const auto&...) { DOCTEST_FAIL("nothing is to be done"); });
      DOCTEST_CHECK(store::Builder(parts.folder.path, make_plan(index), false).complete());
    }
  }
}

DOCTEST_TEST_CASE("a merge that is stopped at every step goes on to the same bytes") {
  const auto rows = random_rows(kRows, 2);
  const StoreFolder whole;
  build_store(whole.path, make_plan("IVF4,Flat"), rows, kFirst);
  const Parts parts({200, 300, 700}, rows);
  int stops = 0;
  for (;; ++stops) {  // one step further each time
    int steps = 0;
    const auto stopped = thrown([&] {
      store::merge(parts.paths, parts.folder.path, "IVF4,Flat", [&](const auto&...) {
        if (steps++ == stops) core::fail(core::Code::stopped, "stopped");
      });
    });
    if (stopped.code == 0) break;
    DOCTEST_REQUIRE(stopped.code == 75);
  }
  DOCTEST_CHECK(stops > 2);
  DOCTEST_CHECK(contents(parts.folder.path) == contents(whole.path));
}

DOCTEST_TEST_CASE("parts have the documents of the text, with the rows that are theirs") {
  const auto rows = random_rows(kRows, 3);
  const Parts parts({0, 150, 700}, rows);
  const auto documents = [&](std::size_t part) {
    const store::Datastore opened(parts.paths[part]);
    return std::vector(opened.documents().begin(), opened.documents().end());
  };
  DOCTEST_CHECK(documents(0) == std::vector<std::int64_t>{0, 0, 0, 0, 0, 0});
  DOCTEST_CHECK(documents(1) == std::vector<std::int64_t>{0, 0, 100, 150, 150, 150});
  DOCTEST_CHECK(documents(2) == std::vector<std::int64_t>{0, 0, 0, 250, 250, 550});
  const store::Datastore nothing(parts.paths[0]), last(parts.paths[2]);
  DOCTEST_CHECK(last.document_of(0) == 2);
  DOCTEST_CHECK(last.document_of(549) == 4);
  store::SearchOptions options;
  options.k = 3;
  const std::span query(rows.keys.data(), kStoreWidth);
  for (const auto row : nothing.search(query, options).ids) DOCTEST_CHECK(row == -1);
  DOCTEST_CHECK(store::manifest_from(core::Json::parse(core::dump(to_json(last.manifest()))), "")
                    .sources[0]
                    .part == store::SourcePart{3, 3, 150, 700});
}

DOCTEST_TEST_CASE(
    "an index that learns from rows: a part without any has none, and is not begun anew") {
  auto plan = make_plan("IVF8,Flat");
  plan.part = {2, 2, 700, 700};
  const StoreFolder folder;
  DOCTEST_CHECK(build_store(folder.path, plan, {}, {0, 0}).exact());
  DOCTEST_CHECK(store::Builder(folder.path, plan, false).complete());
}

DOCTEST_TEST_CASE("parts overlap where they have rows in common, or may have") {
  store::Source whole{"text", 10, 1, {{"window", 64}}, {}};
  const auto part = [&](std::uint64_t begin, std::uint64_t end) {
    store::Source source = whole;
    source.part = {1, 2, begin, end};
    return source;
  };
  DOCTEST_CHECK(overlap(whole, whole));
  DOCTEST_CHECK(overlap(whole, part(0, 5)));
  DOCTEST_CHECK(overlap(part(0, 5), whole));
  DOCTEST_CHECK(overlap(part(0, 5), part(4, 6)));
  DOCTEST_CHECK(overlap(part(4, 6), part(0, 5)));
  DOCTEST_CHECK(overlap(part(0, 9), part(4, 6)));
  DOCTEST_CHECK(!overlap(part(0, 5), part(5, 10)));
  DOCTEST_CHECK(!overlap(part(5, 10), part(0, 5)));
  auto other = part(5, 10);
  other.windows["window"] = 32;
  DOCTEST_CHECK(overlap(part(0, 5), other));
  other.data = "another text";
  DOCTEST_CHECK(!overlap(part(0, 5), other));
}

DOCTEST_TEST_CASE("a row that is damaged is told with its part, and none of it is kept") {
  const auto rows = random_rows(kRows, 4);
  const StoreFolder whole;
  build_store(whole.path, make_plan(), rows, kFirst);
  const Parts parts({200, 300, 700}, rows);
  const auto flip = [&] {
    std::fstream file(
        parts.paths[1] + "/values.npy", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(200);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(200);
    file.put(byte);
  };
  flip();
  const auto error = thrown([&] { store::merge(parts.paths, parts.folder.path, ""); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.text.find(parts.paths[1] + ": damaged: its rows") == 0);
  flip();
  store::merge(parts.paths, parts.folder.path, "");
  DOCTEST_CHECK(contents(parts.folder.path) == contents(whole.path));
}
