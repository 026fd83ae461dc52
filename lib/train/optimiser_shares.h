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

/// Distributes the optimiser's moments and steps over the processes. Weights are assigned whole,
/// the largest first, each to the process with the fewest elements so far. A process therefore
/// exceeds its share by at most the largest weight. Every process holds all weights and gradients.
/// Not thread safe.
class OptimiserShares {
 public:
  OptimiserShares(const NamedWeights& weights, std::shared_ptr<ranks::Group> group);

  /// Returns which weights this process owns.
  std::vector<bool> own() const;
  /// Sends the updated weights to all processes. All processes must call it after each step.
  void spread(const NamedWeights& weights) const;
  /// Adds the moments of the other processes, which put_optimiser() leaves out on rank 0, under the
  /// names they would have there. All processes must call it together.
  void put(model::Checkpoint& checkpoint, const Optimiser& optimiser) const;

 private:
  std::shared_ptr<ranks::Group> group_;
  std::vector<std::int64_t> owner_;  // the rank of each weight's owner
};

}  // namespace train
