#pragma once
// The loop: updates, validation, logs, checkpoints, and going on where a run stopped.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "train/job.h"
#include "train/learner.h"
#include "train/log.h"
#include "train/run_folder.h"

namespace train {

/// How a run is kept, and when it stops early. None of it changes the model.
struct KeepOptions {
  std::int64_t checkpoint_every = 0;  ///< updates; 0: every ten minutes
  std::int64_t keep =
      0;  ///< checkpoints that stay, the latest whose number checkpoint_every divides
  std::optional<std::chrono::steady_clock::time_point>
      deadline;  ///< after it, the run saves and stops
};

/// What the outside sees and decides.
struct Watch {
  struct Progress {
    std::int64_t step, steps, tokens;  ///< updates done, of all; tokens trained on by this process
    std::optional<double> loss, valid_loss;  ///< nats a token, the last known
  };
  std::function<void(const Progress&)> progress = {};
  std::function<bool()> stop = {};  ///< asked before each update
  std::function<void(const std::string&)> note = {};
};

enum class Outcome { finished, stopped, was_finished };

/// Trains in the folder, from its latest checkpoint if there is one, until the run's last update
/// (then the folder holds the model) or until asked to stop (then a checkpoint). Throws what
/// RunFolder, Learner and the writers throw.
Outcome train_in(const RunFolder& folder, Run& run, const KeepOptions& keep,
                 const Watch& watch = {});

}  // namespace train
