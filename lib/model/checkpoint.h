#pragma once
// Checkpoint folders step-N/: the complete state of a run, from which it resumes to byte-identical
// results.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/rng.h"
#include "model/safetensors.h"
#include "nn/arch/model.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace model {

inline constexpr const char* kCheckpointTensors = "state.safetensors";

/// Content of step-N/: state.safetensors and state.json.
struct Checkpoint {
  TensorMap tensors;  ///< any device when saved; on the CPU when loaded
  core::Json facts = core::Json::object();

  /// put_* store weights, a State or a generator's state under a name ("model", "carried",
  /// "dropout", ...); get_* restore them and throw Error{bad_data} that names a missing or
  /// inconsistent item.
  void put_weights(const std::string& name, const nn::Model& model);
  void get_weights(const std::string& name, nn::Model& model) const;
  void put_state(const std::string& name, const nn::State& state);
  nn::State get_state(const std::string& name, torch::Device device = torch::kCPU) const;
  void put_rng(const std::string& name, const core::Rng& rng);
  core::Rng get_rng(const std::string& name) const;
  /// Store and restore torch's default generator of the device.
  void put_generator(const std::string& name, torch::Device device = torch::kCPU);
  void get_generator(const std::string& name, torch::Device device = torch::kCPU) const;

  const torch::Tensor& tensor(const std::string& name) const;  ///< throws Error{bad_data}
  std::string origin;  ///< path of the loaded checkpoint, for messages
};

/// Writes FOLDER/step-STEP/ atomically: writes and syncs the files in step-STEP.tmp.PID/, then
/// renames the folder, replacing an existing one. Returns its path. Throws Error{cannot_create},
/// also if a folder with that name contains other files, and Error{io}.
std::string save_checkpoint(const std::string& folder, std::int64_t step,
                            const Checkpoint& checkpoint);

/// Loads a checkpoint and verifies every byte of both files. Throws Error{no_input},
/// Error{bad_data}.
Checkpoint load_checkpoint(const std::string& path);

/// A checkpoint of a run folder.
struct CheckpointPath {
  std::int64_t step;
  std::string path;
};
/// Returns whether the last component of `path` has the form step-N.
bool is_checkpoint_name(const std::string& path);
/// Returns the checkpoints sorted by step; empty if the folder does not exist.
std::vector<CheckpointPath> checkpoints(const std::string& folder);
std::optional<CheckpointPath> latest_checkpoint(const std::string& folder);
/// Removes a checkpoint; renames it first, so that no partial checkpoint is ever visible. Keeps a
/// folder that contains other files.
void remove_checkpoint(const CheckpointPath& checkpoint);
/// Removes all checkpoints except that of step `but`.
void remove_checkpoints(const std::string& folder, std::optional<std::int64_t> but = std::nullopt);
/// Removes the temporary folders of interrupted writers (step-N.tmp.PID), unless they contain other
/// files. No other process may be writing checkpoints in the folder.
void remove_leftovers(const std::string& folder);

}  // namespace model
