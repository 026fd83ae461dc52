#pragma once
// A State that stays where it is in memory.

#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

/// Its tensors lie where they did as long as they keep their sizes, so that a FixedSequence finds
/// them again. Without gradient. What is said to have stayed: all of them.
class FixedState {
 public:
  /// The same tensors, for a call that puts others in their place.
  State given() const { return state_; }
  /// What a call made of it. Returns whether it stayed.
  bool take(const State& made);
  /// Row i becomes what row rows[i] was, int64 on the CPU. Returns whether it stayed.
  bool select(const torch::Tensor& rows);
  /// Zeroes the rows where `fresh` (B) bool, on the CPU, is true.
  void reset(const torch::Tensor& fresh) { state_.reset(fresh); }

 private:
  State state_;
};

}  // namespace nn
