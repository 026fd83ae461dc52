// The index of a store whose builder was given none.

#include <doctest/doctest.h>

#include "store/care.h"
#include "store/datastore.h"
#include "unit/store/store_folder.h"

namespace {

constexpr std::size_t kMany = 66'000;  // more than are searched exactly without a look at them

// Returns keys around `centres` points, or around the origin if there are none.
StoreRows rows_around(std::size_t centres) {
  core::Rng rng(3);
  std::vector<float> points(centres * kStoreWidth);
  for (float& x : points) x = 4 * static_cast<float>(rng.normal());
  StoreRows rows = random_rows(kMany, 1);
  for (std::size_t i = 0; centres > 0 && i < kMany; ++i) {
    const std::size_t centre = rng.below(centres);
    for (std::size_t j = 0; j < kStoreWidth; ++j)
      rows.keys[i * kStoreWidth + j] += points[centre * kStoreWidth + j];
  }
  return rows;
}

store::Manifest built(const StoreFolder& folder, const StoreRows& rows, const std::string& index) {
  return build_store(folder.path, make_plan(index), rows, {0}, false, kMany);
}

}  // namespace

DOCTEST_TEST_CASE(
    "lists of near keys are used where they find nine in ten, else all keys are read") {
  const StoreFolder near, scattered, chosen;
  const auto clustered = built(near, rows_around(40), "");
  DOCTEST_CHECK(clustered.index == "IVF512,SQ8");
  DOCTEST_CHECK(clustered.recall.recall >= store::kEnoughRecall);
  DOCTEST_CHECK(store::choice_note("s", clustered).empty());

  const auto rows = rows_around(0);
  const auto exact = built(scattered, rows, "");
  DOCTEST_CHECK(exact.index == "exact");
  DOCTEST_CHECK(exact.index_file.empty());
  DOCTEST_CHECK(exact.recall.recall == 1);
  const auto note = store::choice_note("s", exact);
  for (const char* part : {"s: index exact", "IVF512,SQ8", "0.9", "--index"})
    DOCTEST_CHECK(note.find(part) != note.npos);
  // Nothing of the index that was given up is left, and the store opens.
  for (const auto& [name, bytes] : contents(scattered.path))
    DOCTEST_CHECK(name.find("faiss") == name.npos);
  DOCTEST_CHECK(store::Datastore(scattered.path).index() == nullptr);

  // Without keys there is no exact search to change to.
  const StoreFolder keyless;
  auto plan = make_plan("");
  plan.reduction.drop_keys = true;
  const auto codes = build_store(keyless.path, plan, rows, {0}, false, kMany);
  DOCTEST_CHECK(codes.index == "IVF512,SQ8");
  const auto warning = store::recall_warning("s", codes);
  DOCTEST_CHECK(warning.find("low recall") != warning.npos);
  DOCTEST_CHECK(warning.find("exact") == warning.npos);
  DOCTEST_CHECK(warning.find("--rescore") == warning.npos);

  // A choice stays, with its recall.
  const auto own = built(chosen, rows, "IVF512,SQ8");
  DOCTEST_CHECK(own.index == "IVF512,SQ8");
  DOCTEST_CHECK(own.recall.recall < store::kEnoughRecall);
  DOCTEST_CHECK(store::recall_warning("s", own).find("low recall") != std::string::npos);
}

DOCTEST_TEST_CASE("codes are as large as fits into memory, and then smaller") {
  using Names = std::vector<std::string>;
  DOCTEST_CHECK(store::index_choices(65'536, 64) == Names{"exact"});
  DOCTEST_CHECK(store::index_choices(1'000'000, 64) == Names{"IVF1024,SQ8", "exact"});
  DOCTEST_CHECK(store::index_choices(103'000'000, 1024) ==
                Names{"IVF16384,PQ256x4fs", "IVF16384,SQ4", "exact"});
  DOCTEST_CHECK(store::index_choices(103'000'000, 1023) == Names{"IVF16384,SQ4", "exact"});
  // Without keys there is no exact search.
  DOCTEST_CHECK(store::index_choices(65'536, 64, false) == Names{"SQ8"});
  DOCTEST_CHECK(store::index_choices(1'000'000, 64, false) == Names{"IVF1024,SQ8"});
  DOCTEST_CHECK(store::index_choices(103'000'000, 1024, false) ==
                Names{"IVF16384,PQ256x4fs", "IVF16384,SQ4"});
}
