#pragma once
// The tensors of a checkpoint: in one file, or in one file for each process that wrote it.

#include "model/safetensors.h"

namespace model {

/// Place of a tensor that is a part of a larger one, which other files complete.
struct PartOf {
  std::vector<std::int64_t> shape;  ///< of the larger tensor
  std::int64_t begin = 0;           ///< first of its numbers, in row-major order
};
using PartMap = std::map<std::string, PartOf>;

/// Returns the file name of process `part`: state.safetensors of process 0, state.N.safetensors of
/// process N.
std::string checkpoint_file(std::size_t part);
/// Returns whether checkpoint_file() gives this name to some process.
bool is_checkpoint_file(std::string_view name);

/// Writes a process's tensors; those that `parts` names are parts. Returns the digest of the
/// tensors and of their places. Throws Error{io}.
std::string write_checkpoint_file(
    core::ByteSink& sink, const TensorMap& tensors, const PartMap& parts);

/// Open files of one checkpoint. Parts are joined when they are read, so that a reader need not
/// know how many processes wrote them. Thread safe.
class CheckpointFiles {
 public:
  /// Opens the files in `folder` and verifies every byte: digests[i] is that of checkpoint_file(i).
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

}  // namespace model
