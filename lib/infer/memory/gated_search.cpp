#include "infer/memory/gated_search.h"

#include <limits>

#include "infer/memory/stores.h"

namespace infer {
namespace {

using torch::Tensor;

// Of `rows` of n; the others found nothing.
Neighbours spread(const Neighbours& found, const Tensor& rows, std::int64_t n, std::int64_t k) {
  const auto put = [&](const Tensor& from, torch::Dtype dtype, double nothing) {
    Tensor to = torch::full({n, k}, nothing, dtype);
    if (from.defined()) to.index_copy_(0, rows, from);
    return to;
  };
  return {put(found.scores, torch::kFloat32, -std::numeric_limits<double>::infinity()),
          put(found.labels, torch::kInt64, -1), put(found.rows, torch::kInt64, -1),
          put(found.stores, torch::kInt64, -1)};
}

}  // namespace

Searched search_stores(const MemoryPlan& plan, const Tensor& queries, const Tensor& confidence,
                       const std::vector<std::int64_t>& nprobes, const std::string& own) {
  const StorePlan& stores = plan.stores;
  const std::int64_t n = queries.size(0);
  Searched searched;
  const auto search = [&](const Tensor& rows, std::int64_t nprobe) {
    return stores.opened->search(rows, stores.k, nprobe, stores.rescore, own);
  };
  if (!plan.gates.skips()) {
    for (const std::int64_t nprobe : nprobes) searched.found.push_back(search(queries, nprobe));
    searched.searched = n;
    return searched;
  }
  plan.gates.expect_fitted();
  const Tensor rows =
      (search_shares(plan.gates.gate, confidence) >= plan.gates.threshold).nonzero().squeeze(1);
  const Tensor chosen = queries.index_select(0, rows.to(queries.device()));
  for (const std::int64_t nprobe : nprobes) {
    const Neighbours some = rows.size(0) > 0 ? search(chosen, nprobe) : Neighbours{};
    searched.found.push_back(spread(some, rows, n, stores.k));
  }
  searched.searched = rows.size(0);
  return searched;
}

}  // namespace infer
