#pragma once
// The loop: updates, validation, logs, checkpoints, and going on where a run stopped.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/options.h"
#include "ranks/group.h"
#include "train/course.h"
#include "train/run_folder.h"

namespace train {

/// How a run is kept, and when it stops early. None of it changes the model.
struct KeepOptions {
  std::int64_t checkpoint_every = 0;  ///< updates; 0: every ten minutes
  /// Checkpoints that stay, the latest whose number checkpoint_every divides.
  std::int64_t keep = 0;
  bool tensorboard = false;   ///< metrics as events too, see tensorboard_log.h
  std::string max_time = {};  ///< hours:minutes:seconds; empty: no end
  /// After it, the run saves and stops.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  void fields(core::FieldList& f);

  /// From now on max_time runs out. Throws Error{usage} if it is no time.
  void start_clock();
};

/// What the outside sees and decides.
struct Watch {
  struct Progress {
    std::int64_t step, steps, scored;        ///< updates done, of all; what this process scored
    std::optional<double> loss, valid_loss;  ///< the last known
    bool validated;                          ///< after this update
    std::string summary() const;             ///< both, in a few words
  };
  std::function<void(const Progress&)> progress = {};  ///< after each update
  std::function<void(const Progress&)> logged = {};    ///< after updates with metrics
  std::function<bool()> stop = {};                     ///< asked before each update
  std::function<void(const std::string&)> note = {};
};

enum class Outcome { finished, stopped, was_finished };

/// Trains in the folder, from its latest checkpoint if there is one, until the run's last update
/// (then the folder holds the model) or until asked to stop (then a checkpoint). Throws what
/// RunFolder, the course and the writers throw.
/// Of several processes all call it, with the same course; the first writes, and validates while
/// the others wait. Where one is asked to stop all do, after the same update. Throws Error{usage}
/// where they were told different things, Error{bug} if their weights come to differ.
Outcome train_in(const RunFolder& folder, Course& course, const KeepOptions& keep,
                 const Watch& watch = {},
                 const std::shared_ptr<ranks::Group>& group = ranks::Group::alone());

}  // namespace train
