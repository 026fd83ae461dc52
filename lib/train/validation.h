#pragma once
// How good the model of a run is as it stands: its loss on the shard to validate on, and the score
// of the user's command.

#include <functional>
#include <optional>

#include "infer/totals.h"
#include "train/job.h"
#include "train/run_folder.h"

namespace train {

/// On run.valid: with the memory of the training (local and long); of pairs without memory.
infer::Totals valid_totals(Run& run);

/// Writes the model to a folder beside the checkpoints, which is gone afterwards, and runs
/// run.validation.command on it. None: `stop` ended it. Throws as run_valid_command and
/// model::save.
std::optional<double> command_score(const Run& run, const RunFolder& folder,
                                    const std::function<bool()>& stop);

}  // namespace train
