#pragma once
// step-N/ folders: all that a run needs to go on to the same bytes as if it had never stopped.

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

/// What step-N/ holds: state.safetensors and state.json.
struct Checkpoint {
  TensorMap tensors;  ///< any device when saved; on the CPU when loaded
  core::Json facts = core::Json::object();

  /// Weights, a State, a generator's state under names of their own ("model", "carried", "dropout",
  /// ...). get_* restore what put_* put; they throw Error{bad_data} naming what is missing or does
  /// not fit.
  void put_weights(const std::string& name, const nn::Model& model);
  void get_weights(const std::string& name, nn::Model& model) const;
  void put_state(const std::string& name, const nn::State& state);
  nn::State get_state(const std::string& name, torch::Device device = torch::kCPU) const;
  void put_rng(const std::string& name, const core::Rng& rng);
  core::Rng get_rng(const std::string& name) const;
  /// Torch's default generator of the device.
  void put_generator(const std::string& name, torch::Device device = torch::kCPU);
  void get_generator(const std::string& name, torch::Device device = torch::kCPU) const;

  const torch::Tensor& tensor(const std::string& name) const;  ///< throws Error{bad_data}
  std::string origin;  ///< path it was loaded from, for messages
};

/// Writes FOLDER/step-STEP/, whole or not at all: files go to step-STEP.tmp.PID/, are written to
/// disk, and the folder is renamed; one of that name is replaced in the same instant. Returns its
/// path. Throws Error{cannot_create}, also if other files are in one of that name, Error{io}.
std::string save_checkpoint(const std::string& folder, std::int64_t step,
                            const Checkpoint& checkpoint);

/// Throws Error{no_input}, Error{bad_data} (every byte of both files is checked).
Checkpoint load_checkpoint(const std::string& path);

/// A step-N/ of a folder.
struct CheckpointPath {
  std::int64_t step;
  std::string path;
};
/// `path` has the name of one: step-N.
bool is_checkpoint_name(const std::string& path);
/// Sorted by step; none if the folder is not there.
std::vector<CheckpointPath> checkpoints(const std::string& folder);
std::optional<CheckpointPath> latest_checkpoint(const std::string& folder);
/// A folder that is going is renamed first, so that none is ever seen in part. One with other files
/// in it stays.
void remove_checkpoint(const CheckpointPath& checkpoint);
/// Removes all, but that of one step.
void remove_checkpoints(const std::string& folder, std::optional<std::int64_t> but = std::nullopt);
/// Removes what interrupted writers of checkpoints left in the folder (step-N.tmp.PID), unless
/// there are other files in it. Only where no other process writes checkpoints there.
void remove_leftovers(const std::string& folder);

}  // namespace model
