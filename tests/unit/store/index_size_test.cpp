// The estimated size of an index, compared with its size.

#include <doctest/doctest.h>

#include <filesystem>

#include "core/error.h"
#include "store/datastore.h"
#include "store/store_plan.h"
#include "store_folder.h"

#ifdef TESSERA_FAISS

DOCTEST_TEST_CASE("the files of a store are as large as was planned") {
  const auto rows = random_rows(1000, 7);
  for (const char* index :
      {"exact", "Flat", "PQ4", "PQ8x4", "PQ8x4fs", "SQ8", "SQ4", "SQfp16", "IVF16,Flat",
          "IVF16,PQ4", "IVF16,SQ8", "IVF16,SQ4", "PCA8,IVF16,SQ8", "OPQ4_8,PQ4", "RR16,Flat",
          "PQ8x4fs,RFlat", "IVF16,PQ8x4fs", "PCA8,IVF16,PQ4x4fs", "HNSW16,Flat", "HNSW8,SQ8"}) {
    DOCTEST_CAPTURE(index);
    const std::string name = index;
    const bool exactly = name.find("HNSW") == name.npos &&
                         (name.find("IVF") == name.npos || name.find("fs") == name.npos);
    const StoreFolder folder;
    const auto manifest = build_store(folder.path, make_plan(index), rows, {0, 300, 500});
    store::PlanOptions options;
    options.entries = 1000, options.width = kStoreWidth, options.documents = 3;
    options.index = index, options.metric = "ip";
    const auto said = store::plan(options, 1e9);
    const auto bytes = [&](const std::string& file) {
      return std::filesystem::file_size(folder.path / file);
    };
    DOCTEST_CHECK(said["keys_bytes"] == bytes(manifest.keys_file));
    DOCTEST_CHECK(said["values_bytes"] == bytes(manifest.values_file));
    DOCTEST_CHECK(said["documents_bytes"] == bytes(manifest.documents_file));
    const std::uint64_t index_bytes = manifest.exact() ? 0 : bytes(manifest.index_file);
    DOCTEST_CHECK(said["index_bytes"].get<std::uint64_t>() <= index_bytes);
    DOCTEST_CHECK(said["index_bytes_most"].get<std::uint64_t>() >= index_bytes);
    DOCTEST_CHECK(exactly == (said["index_bytes"] == said["index_bytes_most"]));
  }
}

DOCTEST_TEST_CASE("a plan without rows or of an index that there is not is refused") {
  store::PlanOptions options;
  DOCTEST_CHECK_THROWS_AS(store::plan(options, 1e9), core::Error);
  options.entries = 100, options.width = 16, options.index = "Bogus7";
  DOCTEST_CHECK_THROWS_AS(store::plan(options, 1e9), core::Error);
}

DOCTEST_TEST_CASE("more rows, wider keys and more lists take longer") {
  store::PlanOptions options;
  options.entries = 1'000'000, options.width = 256, options.index = "IVF1024,PQ64x4fs";
  const auto one = store::plan(options, 1e9);
  options.entries *= 2;
  const auto two = store::plan(options, 1e9);
  DOCTEST_CHECK(two["fill_s"] > one["fill_s"]);
  DOCTEST_CHECK(two["query_s"] > one["query_s"]);
  options.index = "IVF4096,PQ64x4fs";
  DOCTEST_CHECK(store::plan(options, 1e9)["train_s"] > two["train_s"]);
  options.index = "exact";
  DOCTEST_CHECK(store::plan(options, 1e9)["train_s"] == 0.0);
}

#endif
