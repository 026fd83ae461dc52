#pragma once
// Finds the nearest keys by scanning all of them.
//
// Tiles of the product of queries and keys are compared with each query's threshold in registers
// (exact_kernels.h). The initial threshold comes from a sample of the keys. Whenever a query has
// collected 4 k hits, they are reduced to the best k and the threshold rises. A query for which
// fewer than k keys pass is searched again without a threshold. Threads divide many queries among
// them, or the keys if queries are few. The results of a query are bitwise independent of the other
// queries and of the number of threads.
// The interface through which a store searches all its keys.

#include <mutex>

#include "store/half.h"
#include "store/manifest.h"

namespace store {

/// A KeySearch finds the nearest keys by scanning all of them. Thread safe.
class KeySearch {
 public:
  virtual ~KeySearch() = default;
  /// Finds the k nearest rows for queries (n, width), nearest first: ids and scores (n, k). Ties
  /// are broken by the smaller row. If the store has fewer than k rows, missing hits have id -1 and
  /// score -infinity. Products are summed in float32; -|q - k|^2 is computed as 2 (q.k - |k|^2 / 2)
  /// - |q|^2, with an error of about 1e-6 of its terms. `threads` is the number of CPU threads; 0
  /// means one per processor.
  virtual void search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
      std::span<std::int64_t> ids, std::span<float> scores) const = 0;
};

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
  std::vector<float> sampled_thresholds(
      std::span<const float> queries, std::size_t k, std::size_t threads) const;
  const std::vector<Half>& sample() const;

  std::span<const Half> keys_;
  std::size_t width_, rows_;
  Metric metric_;
  mutable std::once_flag sampled_;
  mutable std::vector<Half> sample_;  // shape (sample_rows, width), evenly spaced
};

}  // namespace store
