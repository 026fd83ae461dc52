#pragma once
// Which weights become the model: the last, those of the best validation, or a mean of the last.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/checkpoint.h"
#include "nn/base/torch.h"
#include "train/optimiser.h"

namespace train {

/// Keeps at most one copy of the weights, on the CPU. Not thread safe.
class Candidates {
 public:
  /// `average` > 0: the mean of the weights after the updates `steps`, `steps` - `every`, ..., so
  /// many of them (those that are there); else the best. `by` names the score, so that a run does
  /// not go on by another; `higher`: the higher is the better.
  Candidates(std::int64_t average, std::int64_t every, std::int64_t steps, std::string by,
             bool higher);

  /// After update `step`. Call it once for each, in order.
  void passed(std::int64_t step, const NamedWeights& weights);
  /// After update `step`. `joint_temperature`: what its memories were calibrated to, if they were.
  void scored(std::int64_t step, double score, const NamedWeights& weights,
              std::optional<double> joint_temperature = std::nullopt);
  /// Puts the weights that were chosen into `weights`; without any they stay as they are.
  void give(const NamedWeights& weights) const;
  struct Best {
    double score;
    std::int64_t step;  ///< of the update after which it was scored
  };
  std::optional<Best> best() const { return best_; }
  /// That of the weights that give() puts there, if it is known.
  std::optional<double> joint_temperature() const { return joint_temperature_; }

  /// Throws Error{usage} if the checkpoint's best is by another score.
  void put(model::Checkpoint& checkpoint) const;
  void get(const model::Checkpoint& checkpoint, const NamedWeights& weights);

 private:
  std::int64_t average_, every_, steps_, summed_ = 0;
  std::string by_;
  bool higher_;
  std::optional<Best> best_;
  std::optional<double> joint_temperature_;
  std::map<std::string, torch::Tensor> kept_;  // the best, or the sum
};

}  // namespace train
