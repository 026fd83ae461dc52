#pragma once
// A State whose tensors keep their memory addresses.

#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

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
