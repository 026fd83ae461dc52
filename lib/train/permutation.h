#pragma once
// Permutation of the items of an epoch.
// Random streams of a run's seed, so that different uses draw independent numbers. A use with an
// index (an epoch, a micro-batch) adds the index to its stream.

#include "core/rng.h"

namespace train {

inline constexpr std::uint64_t kEpochStream = std::uint64_t{1} << 32;    ///< + epoch
inline constexpr std::uint64_t kDropoutStream = std::uint64_t{2} << 60;  ///< + micro-batch
inline constexpr std::uint64_t kCoinStream = std::uint64_t{3} << 60;     ///< + micro-batch
/// Lengths of columns, or ties in the order of pairs: no run uses both.
inline constexpr std::uint64_t kOrderStream = std::uint64_t{4} << 60;

/// First maps of a run on vectors, which uses none of the streams above.
inline constexpr std::uint64_t kFirstMapsStream = 0;
inline constexpr std::uint64_t kWindowsStream = 1;  ///< + micro-batch

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
