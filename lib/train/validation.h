#pragma once
// Validates a run's model: its loss on the validation shard, and the score of the user's command.

#include <functional>
#include <optional>
#include <string>

#include "infer/score/totals.h"
#include "train/job.h"
#include "train/objective.h"
#include "train/run_folder.h"

namespace train {

/// Returns whether there is a validation text and a memory (local or long) to validate with.
bool validates_memory(const Run& run);

struct Validated {
  infer::Totals totals;
  std::optional<double> joint_temperature;  ///< nullopt if validates_memory() is false
};
/// Validates on run.valid with the memory of the training (local and long), at the best of
/// calibration_points().
Validated validate(Run& run);

/// Writes the model to a temporary folder beside the checkpoints and runs `command` on it. Returns
/// nullopt if `stop` ended it. Throws the errors of run_valid_command and Objective::save.
std::optional<double> command_score(const std::string& command, const Objective& objective,
                                    std::optional<double> joint_temperature,
                                    const RunFolder& folder, const std::function<bool()>& stop);

}  // namespace train
