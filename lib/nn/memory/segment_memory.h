#pragma once
// The last segments of continuing rows, as memory entries.

#include <cstdint>
#include <vector>

#include "nn/base/batch.h"
#include "nn/base/memory_rule.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

/// Stores the entries of the last `most` batches of the rows, with possibly different lengths. A
/// State holds all its data and selects, resets, saves and loads it. Not thread safe.
///
///   State::tensors  "N.keys" (B, T, d), "N.labels", "N.run", "N.segment", "N.position" (B, T) of
///                   segment N, 0 the oldest; run + 1, so that zero is padding
///   State::counts   "segments"
class SegmentMemory {
 public:
  explicit SegmentMemory(std::int64_t most) : most_(most) {}

  /// Appends the pairs (key, target) of a batch: keys (B, T, d_key), without gradient.
  void append(const torch::Tensor& g, const Batch& batch);
  /// Returns the entries of each segment, oldest first, row by row.
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
