#pragma once
// How good the model of a run is as it stands: its loss on the shard to validate on, and the score
// of the user's command.

#include <functional>
#include <optional>
#include <string>

#include "infer/score/totals.h"
#include "train/course.h"
#include "train/job.h"
#include "train/run_folder.h"

namespace train {

/// Whether there is a text to validate on, and a memory (local or long) to validate with.
bool validates_memory(const Run& run);

struct Validated {
  infer::Totals totals;
  std::optional<double> joint_temperature;  ///< none if validates_memory() is false
};
/// On run.valid: with the memory of the training (local and long), at the one of
/// calibration_points() that is best for it.
Validated validate(Run& run);

/// Writes the model to a folder beside the checkpoints, which is gone afterwards, and runs
/// `command` on it. None: `stop` ended it. Throws as run_valid_command and Course::save.
std::optional<double> command_score(const std::string& command, const Course& course,
                                    std::optional<double> joint_temperature,
                                    const RunFolder& folder, const std::function<bool()>& stop);

}  // namespace train
