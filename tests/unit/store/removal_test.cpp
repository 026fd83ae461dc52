#include "store/removal.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/io.h"
#include "store/datastore.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using store::Datastore;

// Returns the rows without [begin, end).
StoreRows without(StoreRows rows, std::ptrdiff_t begin, std::ptrdiff_t end) {
  const auto width = static_cast<std::ptrdiff_t>(kStoreWidth);
  rows.keys.erase(rows.keys.begin() + begin * width, rows.keys.begin() + end * width);
  rows.labels.erase(rows.labels.begin() + begin, rows.labels.begin() + end);
  return rows;
}

std::vector<store::Receipt> remove_documents(
    const fs::path& folder, const std::vector<std::int64_t>& documents) {
  store::Removal removal(folder, {documents});
  removal.done();
  return removal.receipts();
}

}  // namespace

DOCTEST_TEST_CASE("a removed document is in no file; the store is as if it had never been there") {
  const auto rows = random_rows(2000, 1);
  for (const std::string index :
      {"exact", "IVF8,Flat", "IVF8,SQ8", "IVF8,PQ4x4fs", "Flat", "HNSW8", "PCA8,IVF8,Flat"}) {
    DOCTEST_CAPTURE(index);
    const StoreFolder folder;
    build_store(folder.path, make_plan(index), rows, {0, 300, 500, 500, 1200});
    const Datastore before(folder.path);
    std::string gone_key(kStoreWidth * 2, 0);  // of row 310
    std::memcpy(gone_key.data(), &before.keys()[310 * kStoreWidth], gone_key.size());

    const auto receipts = remove_documents(folder.path, {3, 1});
    DOCTEST_REQUIRE(receipts.size() == 2);
    DOCTEST_CHECK(receipts[0].document == 1);
    DOCTEST_CHECK(receipts[0].rows == 200);
    DOCTEST_CHECK(receipts[0].values ==
                  core::hash128(std::as_bytes(std::span(&rows.labels[300], 200))).hex());
    DOCTEST_CHECK(receipts[1].document == 3);
    DOCTEST_CHECK(receipts[1].rows == 700);

    const auto kept = without(without(rows, 500, 1200), 300, 500);
    const Datastore after(folder.path);
    store::verify(folder.path);
    DOCTEST_CHECK(after.size() == 1100);
    DOCTEST_CHECK(after.documents().size() == 3);
    DOCTEST_CHECK(after.document_of(299) == 0);
    DOCTEST_CHECK(after.document_of(300) == 2);  // the new document 1 has no row
    DOCTEST_CHECK(std::equal(kept.labels.begin(), kept.labels.end(), after.labels().begin()));
    DOCTEST_CHECK(after.manifest().removed.size() == 2);
    DOCTEST_CHECK(after.manifest().generation == 2);
    for (const auto& entry : fs::directory_iterator(folder.path))
      DOCTEST_CHECK(core::read_text(entry.path()).find(gone_key) == std::string::npos);

    store::SearchOptions options;
    options.k = 20, options.nprobe = 8;
    const std::span queries(kept.keys.data(), 30 * kStoreWidth);
    const auto hits = after.search(queries, options);
    for (std::size_t i = 0; i < hits.ids.size(); ++i) {
      DOCTEST_REQUIRE(hits.ids[i] < 1100);
      if (hits.ids[i] >= 0)
        DOCTEST_CHECK(hits.labels[i] == kept.labels[static_cast<std::size_t>(hits.ids[i])]);
    }
    if (index == "exact" || index == "Flat" || index == "IVF8,Flat")
      DOCTEST_CHECK(hits.ids == after.search_exactly(queries, options).ids);
    DOCTEST_CHECK(before.labels()[310] == rows.labels[310]);  // a reader that has it open continues
  }
}

DOCTEST_TEST_CASE("an index that is cut is one that never had the rows") {
  const auto rows = random_rows(500, 2);
  std::vector<bool> gone(500);
  for (std::size_t i = 100; i < 180; ++i) gone[i] = true;
  const auto kept = without(rows, 100, 180);
  const StoreFolder folder;
  fs::create_directories(folder.path);
  for (const std::string factory : {"IVF4,Flat", "IVF4,SQ8", "IVF4,PQ4x4"}) {
    const auto cut = store::Index::make(factory, kStoreWidth, store::Metric::ip);
    cut->train(rows.keys);
    cut->add(rows.keys);
    DOCTEST_CHECK(cut->remove(gone));
    const std::string a = folder.path / "a", b = folder.path / "b";
    cut->write(a);
    cut->reset();
    cut->add(kept.keys);
    cut->write(b);
    DOCTEST_CHECK(core::read_text(a) == core::read_text(b));
  }
  const auto fast = store::Index::make("IVF4,PQ4x4fs", kStoreWidth, store::Metric::ip);
  fast->train(rows.keys);
  fast->add(rows.keys);
  DOCTEST_CHECK(!fast->remove(gone));
}

DOCTEST_TEST_CASE(
    "a store can grow after a removal, and an addition that waits does not survive it") {
  const auto rows = random_rows(400, 3), more = random_rows(100, 4);
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,Flat"), rows, {0, 100, 200});
  {
    store::Builder builder(folder.path, make_plan("", "more"), true);
    builder.add(more.keys, more.labels);
    builder.commit(nullptr);
  }
  remove_documents(folder.path, {0});
  build_store(folder.path, make_plan("", "more"), more, {0}, true);
  const Datastore after(folder.path);
  store::verify(folder.path);
  DOCTEST_CHECK(after.size() == 400);
  DOCTEST_CHECK(after.labels()[0] == rows.labels[100]);
  DOCTEST_CHECK(after.labels()[300] == more.labels[0]);
  DOCTEST_CHECK(after.manifest().generation == 3);
}

DOCTEST_TEST_CASE("a removal goes on until its receipts were given, and nothing else is done") {
  const auto rows = random_rows(400, 3);
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,Flat"), rows, {0, 100, 200, 300});
  const std::string old_keys = core::read_text(folder.path / "keys.npy");
  std::vector<store::Receipt> given;
  const auto receipt_again = [&] {
    const auto now = store::Removal(folder.path, {{1}}).receipts();
    DOCTEST_REQUIRE(now.size() == 1);
    return now[0].rows == 100 && now[0].values == given[0].values && now[0].generation == 2;
  };
  given = store::Removal(folder.path, {{1}}).receipts();  // and killed before it gave them
  DOCTEST_CHECK(Datastore(folder.path).documents().size() == 3);
  DOCTEST_CHECK(receipt_again());
  core::write_file(folder.path / "keys.npy", old_keys);  // killed before it deleted the old files
  DOCTEST_CHECK(receipt_again());
  DOCTEST_CHECK(!fs::exists(folder.path / "keys.npy"));
  DOCTEST_CHECK(Datastore(folder.path).documents().size() == 3);

  const auto other = thrown([&] { store::Removal(folder.path, {{2}}); });
  DOCTEST_CHECK((other.code == 64 && other.names("store remove --document 1 ")));
  DOCTEST_CHECK(
      thrown([&] { store::Builder(folder.path, make_plan("", "more"), true); }).code == 64);
  store::Removal(folder.path, {{1}}).done();
  DOCTEST_CHECK(!fs::exists(folder.path / "building.json"));
  DOCTEST_CHECK(remove_documents(folder.path, {2})[0].generation == 3);
  DOCTEST_CHECK(Datastore(folder.path).documents().size() == 2);
}

DOCTEST_TEST_CASE("a removal that is asked for again removes nothing more") {
  const auto rows = random_rows(600, 3), more = random_rows(100, 4);
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,Flat"), rows, {0, 100, 200, 300, 400, 500});
  const auto ask = [&](std::vector<std::int64_t> documents,
                       std::optional<std::uint64_t> generation = {}) {
    store::Removal removal(folder.path, {std::move(documents), generation});
    DOCTEST_CHECK(removal.repetition().find("nothing removed") != std::string::npos);
    removal.done();
    return std::pair(removal.repeated(), removal.receipts().at(0).generation);
  };
  using Answer = std::pair<bool, std::uint64_t>;  // whether it was a repetition, and its generation
  const auto documents = [&] { return Datastore(folder.path).documents().size(); };
  DOCTEST_CHECK(ask({3, 1}) == Answer(false, 2));
  const auto before = store::read_manifest(folder.path).fingerprint();
  DOCTEST_CHECK(ask({3, 1}) == Answer(true, 2));
  DOCTEST_CHECK(ask({1, 3, 1}) == Answer(true, 2));
  DOCTEST_CHECK(store::read_manifest(folder.path).fingerprint() == before);
  DOCTEST_CHECK(documents() == 4);

  // An addition in between, complete or begun, changes nothing.
  build_store(folder.path, make_plan("", "more"), more, {0}, true);
  {
    store::Builder builder(folder.path, make_plan("", "still more"), true);
    builder.add(more.keys, more.labels);
    builder.commit(nullptr);
  }
  DOCTEST_CHECK(ask({1, 3}) == Answer(true, 2));
  DOCTEST_CHECK(documents() == 5);
  DOCTEST_CHECK(
      store::Builder(folder.path, make_plan("", "still more"), true).rows() == more.labels.size());

  // The generation determines which document has the number.
  DOCTEST_CHECK(ask({1, 3}, 1) == Answer(true, 2));
  DOCTEST_CHECK(thrown([&] { ask({1, 3}, 2); }).code == 64);
  DOCTEST_CHECK(thrown([&] { ask({0}, 1); }).code == 64);
  DOCTEST_CHECK(thrown([&] { ask({0}, 4); }).code == 64);
  DOCTEST_CHECK(documents() == 5);
  DOCTEST_CHECK(ask({1, 3}, 3) == Answer(false, 4));
  DOCTEST_CHECK(ask({1, 3}, 3) == Answer(true, 4));
  DOCTEST_CHECK(ask({1, 3}, 1) == Answer(true, 2));
  DOCTEST_CHECK(ask({1, 3}) == Answer(true, 4));
  DOCTEST_CHECK(documents() == 3);
  DOCTEST_CHECK(ask({0}) == Answer(false, 5));
  DOCTEST_CHECK(ask({1}) == Answer(false, 6));
  DOCTEST_CHECK(documents() == 1);
  store::verify(folder.path);
}

DOCTEST_TEST_CASE("before_commit is called while the store is still the old one") {
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,Flat"), random_rows(400, 3), {0, 100});
  std::vector<std::uint64_t> seen;
  const auto look = [&] { seen.push_back(store::read_manifest(folder.path).generation); };
  store::Removal(folder.path, {{1}}, {}, look).done();
  store::Removal(folder.path, {{1}}, {}, look).done();
  store::rebuild_index(folder.path, "", {}, look);
  DOCTEST_CHECK(seen == std::vector<std::uint64_t>{1, 2});
}

DOCTEST_TEST_CASE("a removal that fails is as if it had not been begun") {
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,Flat"), random_rows(400, 3), {0, 100});
  fs::create_directory(folder.path / "documents.2.npy");
  DOCTEST_CHECK(thrown([&] { store::Removal(folder.path, {{1}}); }).code == 73);
  DOCTEST_CHECK(!fs::exists(folder.path / "building.json"));
  DOCTEST_CHECK(!fs::exists(folder.path / "keys.2.npy"));
  fs::remove(folder.path / "documents.2.npy");
  remove_documents(folder.path, {0});
  DOCTEST_CHECK(Datastore(folder.path).documents().size() == 1);
}

DOCTEST_TEST_CASE("what cannot be removed is refused, and nothing changes") {
  const StoreFolder folder;
  build_store(folder.path, make_plan(), random_rows(10, 5), {0, 5});
  const auto before = store::read_manifest(folder.path).fingerprint();
  DOCTEST_CHECK(thrown([&] { remove_documents(folder.path, {2}); }).code == 64);
  DOCTEST_CHECK(thrown([&] { remove_documents(folder.path, {-1}); }).code == 64);
  DOCTEST_CHECK(thrown([&] { remove_documents(folder.path, {0, 1}); }).code == 64);
  DOCTEST_CHECK(store::read_manifest(folder.path).fingerprint() == before);
  DOCTEST_CHECK(Datastore(folder.path).size() == 10);
}

DOCTEST_TEST_CASE("verifying finds a flipped bit of any row") {
  for (const std::string name : {"keys.npy", "values.npy"})
    for (const std::streamoff at : {128, 500, 128 + 4 * 99}) {
      const StoreFolder folder;
      build_store(folder.path, make_plan(), random_rows(100, 6), {0});
      store::verify(folder.path);
      std::fstream file(folder.path / name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const char byte = static_cast<char>(file.get() ^ 1);
      file.seekp(at);
      file.put(byte);
      file.close();
      const auto error = thrown([&] { store::verify(folder.path); });
      DOCTEST_CHECK(error.code == 65);
      DOCTEST_CHECK(error.names(name));
    }
}
