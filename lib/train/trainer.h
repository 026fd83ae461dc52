#pragma once
// Training loop: steps, validation, logs, checkpoints, and resuming.

#include "train/objective.h"

namespace train {

/// Options for checkpoints and early stops. They do not affect the model.
struct KeepOptions {
  std::int64_t checkpoint_every = 0;  ///< steps; 0: every ten minutes
  /// Number of permanent checkpoints: the latest whose step is a multiple of checkpoint_every.
  std::int64_t keep = 0;
  bool tensorboard = false;   ///< also writes metrics as events; see log.h
  std::string max_time = {};  ///< hours:minutes:seconds; empty: unlimited
  /// Time at which the run saves and stops.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  void fields(core::FieldList& f);

  /// Starts the clock of max_time. Throws Error{usage} for an invalid time.
  void start_clock();
};

/// Callbacks of the loop.
struct Callbacks {
  struct Progress {
    std::int64_t step, steps, scored;        ///< steps done, all steps; units scored by this
                                             ///< process
    std::optional<double> loss, valid_loss;  ///< last known values
    bool validated;                          ///< after this step
    std::string summary() const;             ///< loss and valid_loss as text
  };
  std::function<void(const Progress&)> progress = {};  ///< after each step
  std::function<void(const Progress&)> logged = {};    ///< after steps with metrics
  std::function<bool()> stop = {};                     ///< polled before each step
  std::function<void(const std::string&)> note = {};
};

enum class Outcome { finished, stopped, was_finished };

/// Trains in the folder, from its latest checkpoint if there is one, until the last step (then the
/// folder contains the model) or until stopped (then a checkpoint). Throws the errors of RunFolder,
/// the objective and the writers.
///
/// With several processes, all call it with an equal objective; the first writes, and validates
/// while
/// the others wait. If one is stopped, all stop after the same step. Throws Error{usage} if their
/// settings differ, Error{bug} if their weights diverge.
Outcome train_in(const RunFolder& folder, Objective& objective, const KeepOptions& keep,
    const Callbacks& watch = {},
    const std::shared_ptr<ranks::Group>& group = ranks::Group::alone());

}  // namespace train
