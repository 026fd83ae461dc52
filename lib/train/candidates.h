#pragma once
// Which weights become the model: the last, those of the best validation, or a mean of the last.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/checkpoint.h"
#include "nn/model.h"
#include "nn/torch.h"

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
  void passed(std::int64_t step, const nn::Model& model);
  void scored(double score, const nn::Model& model);
  /// Puts the weights that were chosen into the model; without any it stays as it is.
  void give(nn::Model& model) const;

  /// Throws Error{usage} if the checkpoint's best is by another score.
  void put(model::Checkpoint& checkpoint) const;
  void get(const model::Checkpoint& checkpoint, const nn::Model& model);

 private:
  std::int64_t average_, every_, steps_, summed_ = 0;
  std::string by_;
  bool higher_;
  std::optional<double> best_score_;
  std::map<std::string, torch::Tensor> weights_;  // the best, or the sum
};

}  // namespace train
