// Malicious indices: every number in them may have any value.
//
// TESSERA_MUTATIONS=N: crafted indices of each kind [12].

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/io.h"
#include "store/datastore.h"
#include "store/removal.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using store::Datastore;

constexpr std::uint64_t kCraftedRows = 300;

std::span<const std::byte> crafted_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string index_of(const std::string& factory, store::Metric metric, const StoreRows& rows) {
  const auto index = store::Index::make(factory, kStoreWidth, metric);
  index->train(rows.keys);
  index->add(rows.keys);
  const StoreFolder folder;
  fs::create_directories(folder.path);
  index->write(folder.path / "index");
  return core::read_text(folder.path / "index");
}

template <class T> void put(std::string& bytes, std::size_t at, T value) {
  if (bytes.size() >= sizeof value)
    std::memcpy(bytes.data() + at % (bytes.size() - sizeof value + 1), &value, sizeof value);
}

// Returns a number that is likely to cause an error.
std::uint64_t odd_number(core::Rng& rng) {
  constexpr std::array<std::uint64_t, 14> numbers{0, 1, 2, kCraftedRows - 1, kCraftedRows,
      kCraftedRows + 1, 255, (1U << 20), 0x7fffffffU, 0xffffffffU, 1ULL << 32, (1ULL << 40) - 1,
      1ULL << 62, ~0ULL};
  return numbers[rng.below(numbers.size())];
}

void mutate(std::string& bytes, core::Rng& rng) {
  for (std::uint64_t n = 1 + rng.below(3); n-- > 0;) {
    // Lengths and kinds are at the front or between long arrays.
    const std::size_t at =
        rng.below(rng.below(2) == 0 ? std::min<std::size_t>(600, bytes.size()) : bytes.size());
    switch (rng.below(6)) {
      case 0: bytes[at] = static_cast<char>(rng.next()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8))); break;
      case 2: put(bytes, at, static_cast<std::uint32_t>(odd_number(rng))); break;
      case 3: put(bytes, at, odd_number(rng)); break;
      case 4: {  // bytes from elsewhere in the file
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + rng.below(bytes.size() - 8), 8);
        put(bytes, at, word);
        break;
      }
      default:
        if (rng.below(4) == 0) bytes.resize(std::max<std::size_t>(16, at));
        else if (rng.below(2) == 0) bytes.insert(at, bytes.substr(at, 8));
        else bytes.erase(at, std::min<std::size_t>(8, bytes.size() - 16));
    }
  }
}

// Everything that programs do with an index: each operation ends, or refuses the index.
void use(const std::string& bytes, store::Metric metric, const StoreRows& rows) {
  try {
    const auto index =
        store::Index::parse(crafted_bytes(bytes), "crafted", kStoreWidth, metric, kCraftedRows);
    std::vector<std::int64_t> ids(3 * 20);
    std::vector<float> scores(ids.size());
    const std::span queries(rows.keys.data(), 3 * kStoreWidth);
    index->search(queries, 20, 3, ids, scores);
    for (const auto id : ids) DOCTEST_REQUIRE(id < static_cast<std::int64_t>(kCraftedRows));
    index->add(queries);
    std::vector<bool> gone(kCraftedRows + 3);
    gone[7] = gone[kCraftedRows - 1] = true;
    index->remove(gone);
    ids.assign(ids.size(), 0);
    index->search(queries, 20, 3, ids, scores);
  } catch (const core::Error& error) {
    DOCTEST_REQUIRE(
        (error.code() == core::Code::bad_data || error.code() == core::Code::unavailable));
  }
}

// Writes `text` to a store's file and repairs the hashes.
void forge(const fs::path& folder, const std::string& name, const std::string& text) {
  core::write_file(folder / name, text);
  auto manifest = store::read_manifest(folder);
  if (name == manifest.index_file) manifest.index_hash = core::hash128(text).hex();
  if (name == manifest.documents_file)
    manifest.documents_hash = core::hash128(text.substr(store::kNpyHeaderBytes)).hex();
  store::write_manifest(folder, manifest);
}

}  // namespace

DOCTEST_TEST_CASE("whatever an index says, it is refused or searched, cut and filled on") {
  const char* given = std::getenv("TESSERA_MUTATIONS");
  const long rounds = given != nullptr ? std::atol(given) : 12;
  const auto rows = random_rows(kCraftedRows, 1);
  for (const std::string factory : {"Flat", "IVF8,Flat", "IVF8,PQ4", "IVF8,PQ4x4fs", "IVF8,SQ8",
           "HNSW4", "PQ4x4fs", "SQ6", "IVF8_HNSW4,PQ2", "HNSW4_PQ4np", "PCA8,IVF4,PQ4x4fs,RFlat"})
    for (const auto metric : {store::Metric::ip, store::Metric::l2}) {
      DOCTEST_CAPTURE(factory);
      const std::string whole = index_of(factory, metric, rows);
      use(whole, metric, rows);
      core::Rng rng(7, metric == store::Metric::ip ? 1 : 2);
      for (long round = 0; round < rounds / 2; ++round) {
        DOCTEST_CAPTURE(round);
        std::string bytes = whole;
        mutate(bytes, rng);
        use(bytes, metric, rows);
      }
    }
}

DOCTEST_TEST_CASE("an index of each type is opened, searched, added to and cut") {
  const auto rows = random_rows(kCraftedRows, 1), more = random_rows(20, 2);
  for (const std::string factory : {"PQ4x8np", "SQ4", "SQfp16", "HNSW4,SQ8", "IVF8,PQ2x6",
           "IVF8,PQ4x4fsr", "IVF8_HNSW4,Flat", "PCAR8,SQ8", "OPQ4_8,IVF8,PQ4x4fs", "RR12,IVF4,SQ8",
           "L2norm,Flat", "IVF8,SQ8,Refine(SQfp16)", "PQ8x4fs,RFlat", "IVF100,Flat"})
    for (const auto metric : {store::Metric::ip, store::Metric::l2}) {
      DOCTEST_CAPTURE(factory);
      const StoreFolder folder;
      auto plan = make_plan(factory);
      plan.metric = metric;
      build_store(folder.path, plan, rows, {0, 100});
      plan.index = "", plan.data = "more";
      build_store(folder.path, plan, more, {0}, true);
      store::Removal(folder.path, {{1}}).done();
      const Datastore opened(folder.path);
      store::SearchOptions options;
      options.k = 10, options.nprobe = 8;
      const auto hits = opened.search(std::span(rows.keys.data(), kStoreWidth), options);
      DOCTEST_CHECK(hits.ids[0] >= 0);
      DOCTEST_CHECK(opened.size() == 120);
    }
}

DOCTEST_TEST_CASE("a type of index that nobody could check is not made") {
  for (const std::string factory : {"LSH", "IDMap,Flat", "NSG8,Flat", "RQ2x4", "IVF8,RQ2x4"}) {
    DOCTEST_CAPTURE(factory);
    const auto error = thrown([&] { store::Index::make(factory, kStoreWidth, store::Metric::l2); });
    DOCTEST_CHECK(error.code == 64);
    DOCTEST_CHECK(error.names(factory));
  }
}

DOCTEST_TEST_CASE("a crafted store with right hashes is refused, and its index can be made anew") {
  const auto rows = random_rows(kCraftedRows, 3);
  for (const std::string factory : {"IVF4,Flat", "HNSW4"}) {
    const StoreFolder folder;
    build_store(folder.path, make_plan(factory), rows, {0, 100});
    std::string index = core::read_text(folder.path / "index.faiss");
    // The number of a row in a list, or of a neighbour: the last valid number.
    const std::uint64_t last = kCraftedRows - 1, beyond = kCraftedRows + 5;
    const std::string from(reinterpret_cast<const char*>(&last), factory == "HNSW4" ? 4 : 8);
    const std::string to(reinterpret_cast<const char*>(&beyond), from.size());
    const auto at = index.rfind(from);
    DOCTEST_REQUIRE(at != std::string::npos);
    forge(folder.path, "index.faiss", index.replace(at, from.size(), to));
    const auto error = thrown([&] { Datastore{folder.path}; });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK((error.names("index.faiss") && error.names("store rebuild")));
    DOCTEST_CHECK(thrown([&] { store::Removal(folder.path, {{0}}); }).code == 65);
    DOCTEST_CHECK(thrown([&] {
      build_store(folder.path, make_plan("", "more"), rows, {0}, true);
    }).code == 65);
    store::rebuild_index(folder.path, "");
    const Datastore opened(folder.path);
    DOCTEST_CHECK(opened.manifest().generation == 2);
    DOCTEST_CHECK(opened.manifest().index == factory);
    DOCTEST_CHECK(!fs::exists(folder.path / "index.faiss"));
    store::rebuild_index(folder.path, "exact");
    DOCTEST_CHECK(Datastore(folder.path).index() == nullptr);
    DOCTEST_CHECK(
        std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 4);
  }
}

DOCTEST_TEST_CASE("documents that do not begin with the first row are refused") {
  for (const std::vector<std::int64_t>& first :
      {std::vector<std::int64_t>{1, 100}, {0, -1}, {0, 301}, {-5, 100}, {100, 0}}) {
    const StoreFolder folder;
    build_store(folder.path, make_plan(), random_rows(kCraftedRows, 3), {0, 100});
    std::string text = core::read_text(folder.path / "documents.npy");
    std::memcpy(text.data() + store::kNpyHeaderBytes, first.data(), 16);
    forge(folder.path, "documents.npy", text);
    DOCTEST_CHECK(thrown([&] { Datastore{folder.path}; }).code == 65);
    DOCTEST_CHECK(thrown([&] { store::Removal(folder.path, {{0}}); }).code == 65);
    DOCTEST_CHECK(
        thrown([&] { store::Builder(folder.path, make_plan("", "more"), true); }).code == 65);
  }
}
