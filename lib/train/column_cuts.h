#pragma once
// Cuts the columns of a text into segments of L tokens or of varying lengths.

#include <cstdint>
#include <vector>

#include "train/permutation.h"

namespace train {

/// Cuts of a column of `total` > 0 tokens. With deviation 0, segments have `length` tokens.
/// Otherwise lengths follow a normal distribution with this standard deviation around `length`, or,
/// for one in twenty, around half of it, limited to at least 5 (or `length`, if less) and at most
/// `length` + 3 deviations; the last segment is the rest (Merity et al. 2018; an option of
/// Transformer-XL). Lengths are drawn once and permuted in each epoch, so that all epochs have
/// equal numbers of segments. Not thread safe: caches the epoch's cuts.
class ColumnCuts {
 public:
  ColumnCuts(std::int64_t total, std::int64_t length, double deviation, std::uint64_t seed);
  std::int64_t count() const { return count_; }
  /// Returns the first token of the epoch's segment `step` in [0, count]; at `count`, `total` or
  /// more.
  std::int64_t begin(std::int64_t epoch, std::int64_t step);

 private:
  std::int64_t length_, count_;
  std::vector<std::int64_t> lengths_, begins_;  // empty if all are `length`
  Permutation permutation_{0, 0};
  std::int64_t epoch_ = -1;
};

}  // namespace train
