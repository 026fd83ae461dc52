#pragma once
// The last segments of rows that go on, as memory entries.

#include <cstdint>
#include <vector>

#include "nn/base/batch.h"
#include "nn/base/memory_rule.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

/// The entries of the last `most` batches of the same rows, whose lengths may differ. All it holds
/// is in a State, which selects, resets, saves and loads it. Not thread safe.
///
///   State::tensors  "N.keys" (B, T, d), "N.labels", "N.run", "N.segment", "N.position" (B, T) of
///                   segment N, 0 the oldest; run + 1, so that zero is padding
///   State::counts   "segments"
class SegmentMemory {
 public:
  explicit SegmentMemory(std::int64_t most) : most_(most) {}

  /// The pairs (g, target) of a batch: g (B, T, d_key), kept without gradient.
  void append(const torch::Tensor& g, const Batch& batch);
  /// Of each segment, the oldest first, row after row.
  std::vector<Entries> view() const;
  void clear() { state_ = {}; }
  std::int64_t size() const;

  State& state() { return state_; }
  const State& state() const { return state_; }

 private:
  std::int64_t most_;
  State state_;
};

}  // namespace nn
