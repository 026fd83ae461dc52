#include "infer/sources/store_lookup.h"

namespace infer {

void Pointers::advance(
    const Stores& stores, const Neighbours& found, std::int64_t i, std::int64_t token) {
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

Neighbours find(const StorePlan& stores, const Tensor& queries, const Tensor& allowed,
    std::span<const Pointers> pointers, std::int64_t nprobe, const shard::Fingerprints& own,
    SearchCounts& counts) {
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

// Searches all stretches in parallel: their first tokens, their second tokens, and so on.
Neighbours find(const StorePlan& stores, const Lookup& lookup, const Tensor& allowed,
    std::int64_t nprobe, SearchCounts& counts) {
  if (stores.follow == 0)
    return find(
        stores, lookup.queries, allowed, std::span<const Pointers>(), nprobe, lookup.skip, counts);
  const auto& lengths = lookup.lengths;
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  Neighbours all = no_neighbours(lookup.queries.size(0), stores.k);
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
        find(stores, lookup.queries.index_select(0, at.to(lookup.queries.device())),
            allowed.defined() ? allowed.index_select(0, at) : allowed, now, nprobe, lookup.skip,
            counts);
    put_neighbours(all, at, found);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (step >= lengths[i]) continue;
      const auto target = lookup.targets[rows[static_cast<std::size_t>(next)]];
      pointers[i].advance(*stores.opened, found, next++, target.item<std::int64_t>());
    }
  }
  return all;
}

Tensor gate_features_of(const Neighbours& found) {
  const Tensor scores = found.scores.slice(1, 0, kGateNearest).to(torch::kFloat64);
  const Tensor labels = found.labels.slice(1, 0, kGateNearest);
  const Tensor there = labels >= 0;
  const Tensor n = there.sum(1).to(torch::kFloat64);
  const Tensor nearest = scores.select(1, 0);
  const Tensor last = torch::where(there, scores, HUGE_VAL).amin(1);
  const Tensor agree = (there * (labels == labels.slice(1, 0, 1))).sum(1) / n;
  const Tensor sorted = std::get<0>(labels.sort(1));
  const Tensor first = (sorted.slice(1, 0, 1) >= 0).sum(1);
  const Tensor changes = (sorted.slice(1, 1) != sorted.slice(1, 0, -1)) * (sorted.slice(1, 1) >= 0);
  const Tensor distinct = (first + changes.sum(1)) / n;
  const Tensor features = torch::stack({nearest, nearest - last, agree, distinct}, 1);
  return features.masked_fill(n.unsqueeze(1) == 0, NAN);
}

}  // namespace infer
