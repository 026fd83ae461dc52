#pragma once
// A datastore of given keys and labels in a temporary folder.

#include <string>
#include <vector>

#include "core/rng.h"
#include "nn/base/torch.h"
#include "plain_scores.h"
#include "store/builder.h"
#include "unit/temporary_folder.h"

namespace tiny {

/// Returns random keys that float16 represents exactly.
inline std::vector<Stored> entries_of(
    std::size_t n, std::int64_t width, std::int64_t vocabulary, std::uint64_t seed) {
  core::Rng rng(seed);
  std::vector<Stored> entries;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> key;
    for (std::int64_t j = 0; j < width; ++j) key.push_back(std::round(rng.normal() * 16) / 16);
    entries.push_back({torch::tensor(key, torch::kFloat64),
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(vocabulary)))});
  }
  return entries;
}

struct StoreKind {
  std::string metric = "ip", index = "exact", data = "text", model = "m", tokenizer = "t";
  std::vector<std::string> shards = {};  // of the data; one document each
};

inline void fill_store(const std::string& folder, const std::vector<Stored>& entries,
    std::int64_t vocabulary, const StoreKind& kind, bool append) {
  store::Plan plan;
  plan.model = kind.model, plan.tokenizer = kind.tokenizer, plan.data = kind.data;
  plan.index = kind.index, plan.metric = store::metric_from(kind.metric, "test");
  plan.width = static_cast<std::uint64_t>(entries.at(0).key.numel());
  plan.vocabulary = static_cast<std::uint64_t>(vocabulary);
  plan.windows["window"] = 8, plan.windows["stride"] = 8, plan.windows["carry"] = "off";
  for (const auto& shard : kind.shards) plan.shards.push_back({shard, 0, 1});
  std::vector<float> keys;
  std::vector<std::int32_t> labels;
  for (const Stored& entry : entries) {
    for (std::int64_t j = 0; j < entry.key.numel(); ++j) keys.push_back(entry.key[j].item<float>());
    labels.push_back(static_cast<std::int32_t>(entry.label));
  }
  store::Builder builder(folder, plan, append);
  builder.add(keys, labels);
  builder.commit(labels.size());
  const std::vector<std::int64_t> documents = {0, static_cast<std::int64_t>(labels.size()) / 2};
  builder.finish(documents);
}

inline void make_store(const std::string& folder, const std::vector<Stored>& entries,
    std::int64_t vocabulary, const StoreKind& kind = {}) {
  fill_store(folder, entries, vocabulary, kind, false);
}

inline void add_to_store(const std::string& folder, const std::vector<Stored>& entries,
    std::int64_t vocabulary, const StoreKind& kind) {
  fill_store(folder, entries, vocabulary, kind, true);
}

}  // namespace tiny
