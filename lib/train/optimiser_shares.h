#pragma once
// An optimiser's moments, each kept by one of the processes of a run (ZeRO stage 1: Rajbhandari et
// al. 2020).

#include <cstdint>
#include <memory>
#include <vector>

#include "model/checkpoint.h"
#include "ranks/group.h"
#include "train/optimiser.h"

namespace train {

/// Which process keeps the moments of which weight, and steps it. Weights are given away whole, the
/// largest first, each to the process that has the fewest numbers by then; so a process has more
/// than its share by at most the largest weight. Every process holds all weights and gradients. Not
/// thread safe.
class OptimiserShares {
 public:
  OptimiserShares(const NamedWeights& weights, std::shared_ptr<ranks::Group> group);

  /// Of the weights, this process's.
  std::vector<bool> own() const;
  /// After a step: every process gets what the others stepped. All processes at once.
  void spread(const NamedWeights& weights) const;
  /// What put_optimiser() leaves out on rank 0, as it is named there: the other processes' moments.
  /// All processes at once.
  void put(model::Checkpoint& checkpoint, const Optimiser& optimiser) const;

 private:
  std::shared_ptr<ranks::Group> group_;
  std::vector<std::int64_t> owner_;  // of each weight, a rank
};

}  // namespace train
