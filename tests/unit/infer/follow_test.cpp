// Following neighbours instead of searching, compared with a plain loop over all entries of a
// store.
#include "infer/sources/store_lookup.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "infer/score/scorer.h"
#include "infer/stores/stores.h"
#include "nn/base/torch.h"
#include "store_of_keys.h"
#include "tiny.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kWordTypes = 5, kStoreRows = 60;

// The neighbours of a token and the next token.
struct Token {
  std::uint64_t at;
  std::int64_t target;
  std::vector<std::pair<double, std::int64_t>> entries;  // score, row; best first
};

struct Followed {
  nn::Model model = tiny::model_of("transformer", "learned", kWordTypes, torch::kFloat64);
  TemporaryFolder folder;
  std::vector<Stored> entries =
      tiny::entries_of(kStoreRows, model.architecture->d_key(), kWordTypes, 1);
  tiny::Text text = tiny::text_of({90, 60}, kWordTypes, 7);
  tiny::Shard shard{text};
  infer::WindowPlan windows = tiny::windows_of(24, 8);
  infer::MemoryPlan plan;
  infer::Totals totals;
  explicit Followed(const std::string& metric = "ip") {
    tiny::make_store(folder / "store", entries, kWordTypes, {metric, "exact", "other"});
    auto options = tiny::memory_of("none");
    tiny::stores(options).folders = {folder / "store"},
    tiny::stores(options).combine = "interpolate";
    tiny::stores(options).k = 20, tiny::stores(options).temperature = 2;
    plan = infer::plan_memory(options, windows, model, {},
        tiny::opened(std::make_shared<const infer::Stores>(
            infer::open_each(tiny::stores(options).folders, torch::empty({0})), "m", "t", "model",
            model.architecture->d_key(), kWordTypes)));
  }
  // One window at a time.
  std::vector<std::vector<Token>> found() {
    std::vector<std::vector<Token>> all;
    infer::Callbacks watch;
    watch.scored = [&](const infer::Scored& scored) {
      auto& window = all.emplace_back();
      for (std::int64_t i = 0; i < scored.targets.size(0); ++i) {
        Token token{scored.first + static_cast<std::uint64_t>(i),
            scored.targets[i].item<std::int64_t>(), {}};
        for (std::int64_t j = 0; j < scored.parts.found()->rows.size(1); ++j)
          if (const auto row = scored.parts.found()->rows[i][j].item<std::int64_t>(); row >= 0)
            token.entries.emplace_back(scored.parts.found()->scores[i][j].item<double>(), row);
        window.push_back(std::move(token));
      }
    };
    totals = infer::score(model, shard.data(), windows, plan, torch::kCPU, watch);
    return all;
  }
};

}  // namespace

DOCTEST_TEST_CASE("followed rows and searches are those of a plain loop") {
  for (const char* metric : {"ip", "l2"}) {
    Followed of(metric);
    tiny::stores(of.plan).k = kStoreRows;
    const auto every = of.found();
    tiny::stores(of.plan).k = 20;
    for (const std::int64_t follow : {1, 3, 5}) {
      tiny::stores(of.plan).follow = follow;
      of.windows.batch_tokens = follow == 3 ? 24 : 4096;
      const auto found = of.found();
      DOCTEST_REQUIRE(found.size() == every.size());
      std::int64_t searches = 0, followed = 0;
      for (std::size_t w = 0; w < found.size(); ++w) {
        std::vector<std::int64_t> pointers;
        for (std::size_t i = 0; i < found[w].size(); ++i) {
          auto expected = every[w][i].entries;
          if (std::ssize(pointers) >= follow) {
            ++followed;
            std::erase_if(expected, [&](const auto& entry) {
              return std::count(pointers.begin(), pointers.end(), entry.second) == 0;
            });
          } else {
            ++searches;
          }
          expected.resize(std::min<std::size_t>(20, expected.size()));
          const auto& entries = found[w][i].entries;
          DOCTEST_REQUIRE(entries.size() == expected.size());
          for (std::size_t j = 0; j < entries.size(); ++j) {
            DOCTEST_CHECK(entries[j].second == expected[j].second);
            DOCTEST_CHECK(entries[j].first == doctest::Approx(expected[j].first).epsilon(1e-4));
          }
          pointers.clear();
          for (const auto& [score, row] : expected)
            if (of.entries[static_cast<std::size_t>(row)].label == found[w][i].target &&
                row + 1 < kStoreRows && row + 1 != kStoreRows / 2)  // in the same document
              pointers.push_back(row + 1);
        }
      }
      DOCTEST_REQUIRE(of.totals.searches.has_value());
      DOCTEST_CHECK(of.totals.searches->made == searches);
      DOCTEST_CHECK(of.totals.searches->followed == followed);
      DOCTEST_CHECK(followed > 0);
      DOCTEST_CHECK(searches > 0);
    }
  }
}

DOCTEST_TEST_CASE("token by token the same is followed as in a window") {
  const torch::NoGradGuard no_gradient;
  Followed of;
  tiny::stores(of.plan).follow = 2;
  of.windows = tiny::windows_of(48, 48);
  const Tensor expected = tiny::log_probs(of.model, of.shard.data(), of.windows, of.plan);
  const auto tokens = of.text.tokens();
  nn::Batch batch;
  batch.inputs = torch::empty({1, 48}, torch::kInt64);
  for (std::int64_t i = 0; i < 48; ++i)
    batch.inputs[0][i] = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]);
  const Tensor at = torch::arange(48).unsqueeze(0);
  batch.targets = torch::zeros_like(batch.inputs), batch.weight = torch::ones({1, 48});
  batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
  batch.fresh = torch::ones({1}, torch::kBool);
  const auto hidden = of.model.architecture->forward(batch, nullptr);
  infer::StreamMemory memory(of.plan, 48, true, of.model, 2);
  for (std::int64_t i = 0; i < 48; ++i) {
    const auto both = [&](const Tensor& rows) {
      return torch::cat({rows[0].slice(0, i, i + 1), rows[0].slice(0, i, i + 1)});
    };
    const Tensor zeros = torch::zeros({2}, torch::kInt64);
    const Tensor words = memory.log_probs(*of.model.head, both(hidden.output), both(hidden.key),
        {torch::arange(2), zeros, zeros + i});
    const auto target = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i) + 1]);
    // Rows in another order, as in a beam.
    const Tensor own = words.select(1, target);
    DOCTEST_CHECK(std::abs(own[i % 2].item<double>() - expected[i].item<double>()) < 1e-5);
    if (i > 0) memory.select(torch::tensor({1, 0}, torch::kInt64));
    memory.read(0, {&target, 1});
    memory.read(1, {&target, 1});
  }
}
