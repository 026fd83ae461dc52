#pragma once
// The interface through which a store searches all its keys.

#include <cstdint>
#include <span>

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

 protected:
  KeySearch() = default;
  KeySearch(const KeySearch&) = default;
  KeySearch& operator=(const KeySearch&) = default;
};

}  // namespace store
