#pragma once
// Folder of a run: one process, one configuration, and a copy of data from stdin.
// Selects the weights that become the model: the last, those of the best validation, or a
// checkpoint average.

#include "core/temporary_file.h"
#include "model/checkpoint.h"
#include "ranks/group.h"
#include "train/optimiser.h"

namespace train {

/// For configuration keys that contain fingerprints: the option ("--valid") and the file's name.
using FileNames = std::map<std::string, std::pair<std::string, std::string>>;

/// Locks the folder while the object exists; the system releases the lock when the process ends.
class RunFolder {
 public:
  /// The first process of a run keeps the folder; the others read its files.
  enum class Role { keeps, reads };
  /// The keeper creates the folder if needed. Throws Error{cannot_create}, also if a process of
  /// another run keeps it.
  explicit RunFolder(const std::string& path, Role role = Role::keeps);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  /// Returns whether the model or adapter is complete.
  bool finished() const;

  /// Replaces "-" (or an empty list) by the copy of stdin in the folder, which is created if
  /// absent. If it exists, stdin must be empty or contain identical bytes; otherwise throws
  /// Error{bad_data}.
  std::vector<std::string> spool_stdin(std::vector<std::string> paths) const;
  void remove_spool() const;

  /// Returns a temporary folder for the model that the validation command reads; no other process
  /// uses it, and remove_leftovers() of the next run removes it.
  std::string model_for_command() const;
  /// Removes temporary files of interrupted runs. Call it only when the folder is known to be this
  /// run's.
  void remove_leftovers() const;

  /// Compares the configuration with that of the run in the folder; throws Error{usage} that names
  /// the first difference, by file if `files` has its name. If no run has begun (no checkpoint
  /// exists), writes `config` (config.json, of which "tessera"."training" is compared) and
  /// `tokenizer` (tokenizer.json, unless empty). In an unfinished run of another build it writes
  /// `config` again, whose "builds" have this one. Returns whether the run has taken all its steps
  /// and `config` trains it further (its "further" is a new one): then the steps and those between
  /// validations may differ.
  bool expect_configuration(const core::OrderedJson& config, const std::string& tokenizer,
      const FileNames& files = {}) const;

  /// Makes the finished run one with the steps of `config`. The checkpoint of its last step must
  /// exist: the model is removed, then config.json is replaced.
  void begin_further(const core::OrderedJson& config) const;

  /// Removes checkpoints except the latest (unless `done`) and the `keep` latest whose step is a
  /// multiple of `every`.
  void prune(std::int64_t keep, std::int64_t every, bool done) const;

 private:
  std::string path_;
  std::optional<core::FolderLock> lock_;
};

/// Returns the builds that trained the run in the folder, in order, with this one last:
/// [{"version", "revision"}, ...] ("builds" of config.json). A build that follows itself counts
/// once.
core::OrderedJson builds_of(const std::string& folder);

/// Returns the steps after which the run in the folder was trained further, in order ("further" of
/// its config.json). If the run has taken all its steps, and `steps` is more, adds their number.
/// Empty if there is no run. Throws Error{bad_data}.
std::vector<std::int64_t> further_from(const std::string& folder, std::int64_t steps);

/// A run's folder, and its data as files that every process can read.
struct OpenedRun {
  std::unique_ptr<RunFolder> folder;
  std::vector<std::string> shards;
};
/// Opens the folder; the first process opens it before the others. Throws Error{usage} if several
/// processes would share stdin, and the errors of RunFolder.
OpenedRun open_run(
    const std::string& path, const std::vector<std::string>& files, ranks::Group& group);

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
