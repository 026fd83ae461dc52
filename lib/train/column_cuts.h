#pragma once
// Where columns of a text are cut into segments: every L tokens, or at lengths that vary.

#include <cstdint>
#include <vector>

#include "train/permutation.h"

namespace train {

/// Cuts of a column of `total` > 0 tokens. deviation 0: every `length` tokens. Else lengths are
/// drawn from a normal distribution of this standard deviation around `length`, or, one in twenty,
/// around half of it; never below 5 (or `length`, if that is less) nor above `length` + 3
/// deviations; the last is what remains (Merity et al. 2018; Transformer-XL's option). They are
/// drawn once; each epoch takes them in a new order, so that all epochs have as many segments. Not
/// thread safe: keeps the epoch's cuts.
class ColumnCuts {
 public:
  ColumnCuts(std::int64_t total, std::int64_t length, double deviation, std::uint64_t seed);
  std::int64_t count() const { return count_; }
  /// First token of the epoch's segment `step` in [0, count]; at `count`, `total` or beyond.
  std::int64_t begin(std::int64_t epoch, std::int64_t step);

 private:
  std::int64_t length_, count_;
  std::vector<std::int64_t> lengths_, begins_;  // empty where all are `length`
  Permutation permutation_{0, 0};
  std::int64_t epoch_ = -1;
};

}  // namespace train
