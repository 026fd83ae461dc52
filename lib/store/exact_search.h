#pragma once
// The nearest keys by looking at all of them.
//
// Tiles of the product of queries and keys are tested against each query's threshold while they are
// in registers (exact_kernels.h). The threshold comes from a sample of the keys and rises whenever
// a query has collected 4 k hits, which are then cut down to the best k. A query for which fewer
// than k keys pass is searched again without a threshold. Many queries are split over threads; of
// few queries, the keys are. What a query finds has the same bits in any company, on any number of
// threads.

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "store/half.h"
#include "store/key_search.h"
#include "store/manifest.h"

namespace store {

/// keys (N, width), row after row, N below 2^32; they must outlive it.
class ExactSearch : public KeySearch {
 public:
  /// Throws Error{unavailable} for 2^32 rows or more.
  ExactSearch(std::span<const Half> keys, std::int64_t width, Metric metric);

  /// Memory: 32 bytes for each of min(n, 4096) * k, a share of the keys sampled (at most 65,536 of
  /// them) and what of the keys the system keeps.
  void search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
              std::span<std::int64_t> ids, std::span<float> scores) const override;

 private:
  void search_batch(std::span<const float> queries, std::size_t k, std::size_t threads,
                    std::span<std::int64_t> ids, std::span<float> scores) const;
  std::vector<float> sampled_thresholds(std::span<const float> queries, std::size_t k,
                                        std::size_t threads) const;
  const std::vector<Half>& sample() const;

  std::span<const Half> keys_;
  std::size_t width_, rows_;
  Metric metric_;
  mutable std::once_flag sampled_;
  mutable std::vector<Half> sample_;  // (sample_rows, width), evenly spread
};

}  // namespace store
