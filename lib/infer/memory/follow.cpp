#include "infer/memory/follow.h"

#include "infer/stores/stores.h"

namespace infer {

using torch::Tensor;

void Pointers::advance(const Stores& stores, const Neighbours& found, std::int64_t i,
                       std::int64_t token) {
  rows.clear();
  const auto k = found.labels.size(1);
  const auto* label = found.labels.const_data_ptr<std::int64_t>() + i * k;
  const auto* row = found.rows.const_data_ptr<std::int64_t>() + i * k;
  const auto* store = found.stores.const_data_ptr<std::int64_t>() + i * k;
  for (std::int64_t j = 0; j < k; ++j) {
    if (label[j] != token || row[j] < 0) continue;
    const std::int64_t next = stores[static_cast<std::size_t>(store[j])].after(row[j]);
    if (next >= 0) rows.push_back({store[j], next});
  }
}

Neighbours find(const MemoryPlan& plan, const Tensor& queries, const Tensor& allowed,
                std::span<const Pointers> pointers, std::int64_t nprobe,
                const shard::Fingerprints& own, SearchCounts& counts) {
  const StorePlan& stores = plan.stores;
  const std::int64_t n = queries.size(0);
  const bool* const may = allowed.defined() ? allowed.const_data_ptr<bool>() : nullptr;
  std::vector<std::int64_t> searched, followed;
  std::vector<std::span<const StoreRow>> pointed;
  for (std::int64_t i = 0; i < n; ++i) {
    const Pointers* const at = pointers.empty() ? nullptr : &pointers[static_cast<std::size_t>(i)];
    if (stores.follow > 0 && at != nullptr && std::ssize(at->rows) >= stores.follow) {
      followed.push_back(i);
      pointed.emplace_back(at->rows);
    } else if (may == nullptr || may[i]) {
      searched.push_back(i);
    }
  }
  const auto search = [&](const Tensor& rows) {
    return stores.opened->search(rows, stores.k, nprobe, stores.rescore, own);
  };
  counts.made += std::ssize(searched), counts.followed += std::ssize(followed);
  counts.skipped += n - std::ssize(searched) - std::ssize(followed);
  if (std::ssize(searched) == n) return search(queries);
  Neighbours found = no_neighbours(n, stores.k);
  const auto put = [&](const std::vector<std::int64_t>& which, const auto& found_of) {
    if (which.empty()) return;
    const Tensor rows = torch::tensor(which, torch::kInt64);
    put_neighbours(found, rows, found_of(queries.index_select(0, rows.to(queries.device()))));
  };
  put(searched, search);
  put(followed, [&](const Tensor& rows) { return stores.opened->at(rows, pointed, stores.k); });
  return found;
}

}  // namespace infer
