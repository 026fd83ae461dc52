#pragma once
// Finds the nearest keys by scanning all of them.
//
// Tiles of the product of queries and keys are compared with each query's threshold in registers
// (exact_kernels.h). The initial threshold comes from a sample of the keys. Whenever a query has
// collected 4 k hits, they are reduced to the best k and the threshold rises. A query for which
// fewer than k keys pass is searched again without a threshold. Threads divide many queries among
// them, or the keys if queries are few. The results of a query are bitwise independent of the other
// queries and of the number of threads.

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "store/half.h"
#include "store/key_search.h"
#include "store/manifest.h"

namespace store {

/// An ExactSearch searches keys (N, width), row-major, with N below 2^32; the keys must outlive it.
class ExactSearch : public KeySearch {
 public:
  /// Prepares a search. Throws Error{unavailable} for 2^32 rows or more.
  ExactSearch(std::span<const Half> keys, std::int64_t width, Metric metric);

  /// Searches as KeySearch does. Memory: 32 bytes for each of min(n, 4096) * k hits, the sample of
  /// at most 65,536 keys, and the pages of the keys that the system caches.
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
  mutable std::vector<Half> sample_;  // shape (sample_rows, width), evenly spaced
};

}  // namespace store
