#pragma once
// Selects the weights that become the model: the last, those of the best validation, or a
// checkpoint average.

#include "model/checkpoint.h"
#include "train/optimiser.h"

namespace train {

/// Stores at most one copy of the weights, on the CPU. Not thread safe.
class Candidates {
 public:
  /// `average` > 0: the mean of the weights after steps `steps`, `steps` - `every`, ..., `average`
  /// of them (or as many as exist); else the best. `by` names the score, so that a run cannot
  /// resume with another; `higher`: higher scores are better.
  Candidates(
      std::int64_t average, std::int64_t every, std::int64_t steps, std::string by, bool higher);

  /// Returns whether passed() reads the weights after step `step`.
  bool reads(std::int64_t step) const;
  /// Records the weights after step `step`. Call it once for each step, in order.
  void passed(std::int64_t step, const NamedWeights& weights);
  /// Records the score after step `step`. `joint_temperature`: the calibrated temperature, if any.
  void scored(std::int64_t step, double score, const NamedWeights& weights,
      std::optional<double> joint_temperature = std::nullopt);
  /// Copies the selected weights into `weights`; no effect if there are none.
  void give(const NamedWeights& weights) const;
  struct Best {
    double score;
    std::int64_t step;  ///< step after which it was scored
  };
  std::optional<Best> best() const { return best_; }
  /// Returns the temperature of the weights that give() copies, if known.
  std::optional<double> joint_temperature() const { return joint_temperature_; }

  /// Throws Error{usage} if the checkpoint's best has another score.
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
