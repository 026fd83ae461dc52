#include "infer/memory/gated_search.h"

#include <algorithm>

#include "infer/stores/stores.h"

namespace infer {
namespace {

using torch::Tensor;

// All stretches side by side: their first tokens, their second tokens ...
Neighbours follow_all(const MemoryPlan& plan, const Tensor& queries, const Tensor& allowed,
                      const Stretches& stretches, std::int64_t nprobe,
                      const shard::Fingerprints& own, SearchCounts& counts) {
  const auto& lengths = stretches.lengths;
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  Neighbours all = no_neighbours(queries.size(0), plan.stores.k);
  std::vector<Pointers> pointers(lengths.size());
  for (std::int64_t step = 0; step < longest; ++step) {
    std::vector<std::int64_t> rows;
    std::vector<Pointers> now;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < lengths.size(); begin += lengths[i++]) {
      if (step >= lengths[i]) continue;
      rows.push_back(begin + step);
      now.push_back(std::move(pointers[i]));
    }
    const Tensor at = torch::tensor(rows, torch::kInt64);
    const Neighbours found =
        find(plan, queries.index_select(0, at.to(queries.device())),
             allowed.defined() ? allowed.index_select(0, at) : allowed, now, nprobe, own, counts);
    put_neighbours(all, at, found);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (step >= lengths[i]) continue;
      const auto target = stretches.targets[rows[static_cast<std::size_t>(next)]];
      pointers[i].advance(*plan.stores.opened, found, next++, target.item<std::int64_t>());
    }
  }
  return all;
}

}  // namespace

Tensor allowed_searches(const MemoryPlan& plan, const Tensor& confidence) {
  if (!plan.gates.skips()) return {};
  plan.gates.expect_fitted();
  return search_shares(plan.gates.gate, confidence.cpu()) >= plan.gates.threshold;
}

Searched search_stores(const MemoryPlan& plan, const Tensor& queries, const Tensor& confidence,
                       const Stretches& stretches, const std::vector<std::int64_t>& nprobes,
                       const shard::Fingerprints& own) {
  const Tensor allowed = allowed_searches(plan, confidence);
  Searched searched;
  for (const std::int64_t nprobe : nprobes) {
    SearchCounts counts;
    searched.found.push_back(
        plan.stores.follow > 0 ? follow_all(plan, queries, allowed, stretches, nprobe, own, counts)
                               : find(plan, queries, allowed, {}, nprobe, own, counts));
    if (searched.found.size() == 1) searched.counts = counts;
  }
  return searched;
}

}  // namespace infer
