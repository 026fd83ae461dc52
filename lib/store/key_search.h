#pragma once
// What a store asks for the nearest of its keys, whoever looks at them.

#include <cstdint>
#include <span>

namespace store {

/// Looks at all keys of a store. Thread safe.
class KeySearch {
 public:
  virtual ~KeySearch() = default;
  /// queries (n, width) -> ids and scores (n, k): the nearest first, of equal scores the smaller
  /// row; where the store has fewer than k, id -1 and score -infinity. Products are sums in
  /// float32; -|q - k|^2 is 2 (q.k - |k|^2 / 2) - |q|^2, off by about 1e-6 of its parts. `threads`
  /// of the processor, 0: one each.
  virtual void search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
                      std::span<std::int64_t> ids, std::span<float> scores) const = 0;

 protected:
  KeySearch() = default;
  KeySearch(const KeySearch&) = default;
  KeySearch& operator=(const KeySearch&) = default;
};

}  // namespace store
