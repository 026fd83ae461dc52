#pragma once
// Permutation of the items of an epoch.

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/rng.h"
#include "train/seed_streams.h"

namespace train {

/// Returns 0 .. n-1 in the shuffled order of an epoch; caches one epoch. Not thread safe.
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t seed)
      : items_(static_cast<std::size_t>(n)), seed_(seed) {}
  const std::vector<std::int64_t>& of(std::int64_t epoch) {
    if (epoch != epoch_) {
      std::iota(items_.begin(), items_.end(), 0);
      core::Rng(seed_, kEpochStream + static_cast<std::uint64_t>(epoch)).shuffle(items_);
      epoch_ = epoch;
    }
    return items_;
  }

 private:
  std::vector<std::int64_t> items_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
};

}  // namespace train
