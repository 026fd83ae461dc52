#pragma once
// Batches of tokens (or vectors) with their positions in the data stream.
// State that a model carries from call to call, for B rows: KV caches, recurrent cells, memory
// rings, pending values.
// A State whose tensors keep their memory addresses.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

/// A TokenPositions has the position of each token in the data stream: three int64 CPU tensors of
/// equal shape, (B, T) or (N). Tokens of a run are consecutive in the text; a run consists of
/// segments; `position` counts tokens from the start of the data. Run -1 marks padding. Ids are
/// global: no two batches and no two processes use equal ids for different positions.
struct TokenPositions {
  torch::Tensor run, segment, position;

  static TokenPositions empty();
  TokenPositions flatten() const;                                    ///< (N)
  TokenPositions slice(std::int64_t begin, std::int64_t end) const;  ///< along the first dimension
  static TokenPositions concatenate(const std::vector<TokenPositions>& places);
  std::int64_t size() const { return run.numel(); }
};

/// A Batch has B rows of T consecutive tokens each.
struct Batch {
  torch::Tensor inputs;  ///< (B, T) int64 ids, or (B, T, width) float32 vectors
  /// (B, T) int64: the token after each input; or (B, T, width) float32.
  torch::Tensor targets;
  torch::Tensor weight;  ///< (B, T) float32: 1 scored, 0 context only
  TokenPositions place;  ///< (B, T), positions of the inputs
  torch::Tensor fresh;   ///< (B) bool on the CPU: rows whose State is reset
  torch::Tensor source;  ///< (B, S) int64 or undefined: input of an encoder; -1 is padding
  /// CPU copies of the device tensors, which save a synchronisation. Undefined if the tensors are
  /// on the CPU or no copy exists.
  torch::Tensor host_targets = {}, host_weight = {}, host_source = {};

  /// Returns a batch of padding: zeros, with run -1 and without fresh rows or sources.
  static Batch padding(std::int64_t rows, std::int64_t steps);
  std::int64_t rows() const { return inputs.size(0); }
  std::int64_t steps() const { return inputs.size(1); }
  /// Copies the tensors of the computation to `device` without synchronisation; place and fresh
  /// remain on the CPU.
  Batch to(torch::Device device) const;
  /// Returns true if no token is padding. Reads the CPU only, without device synchronisation.
  bool dense() const { return !(place.run < 0).any().item<bool>(); }
};

/// Named tensors whose first dimension is the row. All zeros mean "fresh": zeroing a row resets it,
/// so lengths and validity must be tensors of the row too. `counts` are common to all rows (for
/// example the used slots of a buffer). A State cannot be rolled back. Not thread safe.
class State {
 public:
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::int64_t> counts;
  /// Names of tensors whose first dimension is the step and second the row, so that the last steps
  /// of all rows are contiguous.
  std::set<std::string> by_step;

  bool empty() const { return tensors.empty(); }
  bool has(const std::string& name) const { return tensors.count(name) > 0; }
  /// Selects rows in the order of `rows` (K) int64; a row may occur more than once (beam search).
  void select(const torch::Tensor& rows);
  /// Zeroes the rows for which `fresh` (B) bool is true.
  void reset(const torch::Tensor& fresh);
  /// Detaches all tensors from the autograd graph.
  void detach();
  void to(torch::Device device);
  /// Returns the bytes of all tensors.
  std::int64_t bytes() const;

 private:
  std::int64_t row_dimension(const std::string& name) const { return by_step.count(name) > 0; }
};

/// Keeps its tensors at fixed addresses while their sizes are constant, so that a FixedSequence can
/// replay work on them. Holds no gradient. The returned booleans say whether all addresses are
/// unchanged.
class FixedState {
 public:
  /// Returns the State, for a call that replaces its tensors.
  State given() const { return state_; }
  /// Copies the State that a call returned. Returns whether all addresses are unchanged.
  bool take(const State& made);
  /// Replaces row i by the former row rows[i] (int64 on the CPU). Returns whether all addresses are
  /// unchanged.
  bool select(const torch::Tensor& rows);
  /// Zeroes the rows for which `fresh` (B), bool on the CPU, is true.
  void reset(const torch::Tensor& fresh) { state_.reset(fresh); }

 private:
  State state_;
};

}  // namespace nn
