#pragma once
// State that a model carries from call to call, for B rows: KV caches, recurrent cells, memory
// rings, pending values.
// A State whose tensors keep their memory addresses.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

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
