#pragma once
// Checkpoint folders step-N/: the complete state of a run, from which it resumes to byte-identical
// results.
// The tensors of a checkpoint: in one file, or in one file for each process that wrote it.

#include "model/safetensors.h"
#include "nn/arch/model.h"

namespace model {

/// Place of a tensor that is a part of a larger one, which other files complete.
struct PartOf {
  std::vector<std::int64_t> shape;  ///< of the larger tensor
  std::int64_t begin = 0;           ///< first of its numbers, in row-major order
};
using PartMap = std::map<std::string, PartOf>;

/// Open files of one checkpoint. Parts are joined when they are read, so that a reader need not
/// know how many processes wrote them. Thread safe.
class CheckpointFiles {
 public:
  /// Opens the files in `folder`, state.safetensors of process 0 and state.N.safetensors of process
  /// N, and verifies every byte: digests[i] is that of process i's file.
  /// Throws Error{no_input}, and Error{bad_data} if a file is damaged or replaced, or if the parts
  /// of a tensor do not cover it once.
  CheckpointFiles(const std::string& folder, const std::vector<std::string>& digests);

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  std::vector<std::string> names() const;
  /// Return a tensor, or its numbers [begin, end) in row-major order; on the CPU. Throw
  /// Error{bad_data} if it is missing or has fewer numbers.
  torch::Tensor tensor(const std::string& name) const;
  torch::Tensor numbers(const std::string& name, std::int64_t begin, std::int64_t end) const;

 private:
  // A range of a tensor's numbers in a file.
  struct Piece {
    std::int64_t begin, end;
    std::size_t file;
  };
  struct Whole {
    std::vector<std::int64_t> shape;
    std::vector<Piece> pieces;  // by begin
    std::int64_t size() const { return pieces.back().end; }
  };
  void add_file(std::size_t file, const std::string& digest);
  const Whole& of(const std::string& name) const;

  std::string folder_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::map<std::string, Whole> tensors_;
};

inline constexpr const char* kCheckpointTensors = "state.safetensors";

/// Content of step-N/: state.json, and state.safetensors, to which state.1.safetensors, ... belong
/// if several processes wrote it.
struct Checkpoint {
  TensorMap tensors;  ///< any device when saved; on the CPU when loaded
  PartMap parts;      ///< tensors that are parts of larger ones; empty when loaded
  core::Json facts = core::Json::object();
  std::shared_ptr<const CheckpointFiles> files;  ///< tensors that are read on demand; or null

  /// put_state stores a State under a name ("carried", ...); get_* restore weights or a State by
  /// their name and throw Error{bad_data} that names a missing or inconsistent item.
  void get_weights(const std::string& name, nn::Model& model) const;
  /// Copies the tensor `name` to `weight`, which must have its shape and dtype.
  void get_weight(const std::string& name, const torch::Tensor& weight) const;
  void put_state(const std::string& name, const nn::State& state);
  nn::State get_state(const std::string& name, torch::Device device = torch::kCPU) const;

  /// Return a tensor, or its numbers [begin, end) in row-major order. Throw Error{bad_data} if it
  /// is missing or has fewer numbers.
  torch::Tensor tensor(const std::string& name) const;
  torch::Tensor numbers(const std::string& name, std::int64_t begin, std::int64_t end) const;
  std::string origin;  ///< path of the loaded checkpoint, for messages
};

/// Writes FOLDER/step-STEP/ atomically: writes and syncs the files in step-STEP.tmp.PID/, then
/// renames the folder, replacing an existing one. Returns its path. Throws Error{cannot_create},
/// also if a folder with that name contains other files, and Error{io}.
std::string save_checkpoint(
    const std::string& folder, std::int64_t step, const Checkpoint& checkpoint);

/// Do what save_checkpoint() does for a checkpoint that several processes write. Process 0 calls
/// begin_checkpoint(), which returns the temporary folder; then each other process `part` writes
/// its tensors there with save_part(), which returns their digest; then process 0 calls
/// end_checkpoint() with its own tensors and the others' digests, in order. Processes that end
/// before that leave only the temporary folder.
std::string begin_checkpoint(const std::string& folder, std::int64_t step);
std::string save_part(const std::string& building, std::size_t part, const Checkpoint& checkpoint);
std::string end_checkpoint(const std::string& building, const std::string& folder,
    std::int64_t step, const Checkpoint& checkpoint, const std::vector<std::string>& digests);

/// Loads a checkpoint and verifies every byte of its files. Throws Error{no_input},
/// Error{bad_data}.
Checkpoint load_checkpoint(const std::string& path);
/// As load_checkpoint(), but tensors are read when they are asked for.
Checkpoint open_checkpoint(const std::string& path);

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
