// Neighbours of a context, with the model and the store's keys on a device.

#include "infer/stores/store_search.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "device/pretend_device.h"
#include "unit/infer/store_of_keys.h"
#include "unit/infer/tiny.h"

namespace {

constexpr std::int64_t kStoreWords = 23;

// A store of the model's keys, searched for two contexts.
class Searched {
 public:
  explicit Searched(const std::string& index) {
    const auto model = tiny::model_of("transformer", "learned", kStoreWords);
    model::save(folder_ / "model", model, {}, "");
    tiny::StoreKind kind{"l2", index};
    kind.model = model::load(folder_ / "model").fingerprint.hex();
    kind.tokenizer = "";
    tiny::make_store(folder_ / "store",
        tiny::entries_of(400, model.architecture->d_key(), kStoreWords, 1), kStoreWords, kind);
    options_.model = folder_ / "model";
    options_.store = folder_ / "store";
    options_.ids = true;
    options_.k = 9;
    options_.contexts = {"3 1 4 1 5", "9 2"};
  }

  // Rows in order, and what the host waited for.
  struct Found {
    std::vector<std::int64_t> rows;
    std::vector<double> scores;
    std::vector<std::string> waits;
  };
  Found on(torch::Device device) const {
    infer::StoreSearch search(options_, device);
    Found found;
    pretend::take_waits();
    search.find_all([&](const infer::NearEntries& near) {
      for (const auto& part : near.parts) {
        found.rows.push_back(part["row"].get<std::int64_t>());
        found.scores.push_back(part["score"].get<double>());
      }
    });
    found.waits = pretend::take_waits();
    return found;
  }

 private:
  TemporaryFolder folder_;
  infer::StoreSearchOptions options_;
};

}  // namespace

DOCTEST_TEST_CASE("a context's neighbours are found on a device, unless the store has an index") {
  for (const bool exact : {true, false}) {
    const Searched searched(exact ? "exact" : "IVF2,Flat");
    const auto here = searched.on(torch::kCPU), there = searched.on(pretend::device());
    DOCTEST_REQUIRE(here.rows.size() == 18);
    DOCTEST_CHECK(there.rows == here.rows);
    for (std::size_t i = 0; i < here.scores.size(); ++i)
      DOCTEST_CHECK(there.scores[i] == doctest::Approx(here.scores[i]).epsilon(1e-4));
    // For each context, the key and the result, if the device has it.
    DOCTEST_CHECK(
        std::count(there.waits.begin(), there.waits.end(), "copy to the host") == (exact ? 4 : 2));
  }
}
