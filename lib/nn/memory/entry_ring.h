#pragma once
// Ring buffer of the last steps of streams, as memory entries.
// The last segments of continuing rows, as memory entries.

#include "nn/base/memory_rule.h"

namespace nn {

/// Stores the last `capacity` steps of rows that advance together: positions of a text, or of the
/// rows of a decoding batch. A State holds all its data and selects, resets, saves and loads it.
/// Buffers start small and grow to nearly twice the capacity, so that the stored steps are always
/// contiguous, oldest first, with a step's rows side by side, and each step is moved at most once
/// on average. Not thread safe.
///
///   State::tensors  "keys" (steps, rows, ..., d), "labels", "run", "segment", "position"
///                   (steps, rows, ...), by step; run + 1, so that zero is padding
///   State::counts   "begin", "end": the steps held
class EntryRing {
 public:
  explicit EntryRing(std::int64_t capacity);

  /// Appends T steps: keys (T, rows, ..., d), labels and place (T, rows, ...). Copies them without
  /// gradient.
  void append(const torch::Tensor& keys, const torch::Tensor& labels, const TokenPositions& place);
  /// Returns stored steps without the `skip` newest, limited to the `at_most` newest of the rest:
  /// keys (M, d), labels and place (M), step by step. Keys and labels are views, valid until the
  /// next call of append or select.
  Entries view(
      std::int64_t skip = 0, std::int64_t at_most = std::numeric_limits<std::int64_t>::max()) const;
  /// Replaces row i by the former row rows[i]; rows (int64) has one element for each new row (beam
  /// search, finished rows). Runs become the row's number.
  void select(const torch::Tensor& rows);
  /// Appends the `more` rows of another ring with the same capacity behind the `rows` own ones. The
  /// newest steps of both become the same step; a row with fewer steps is padded before its first
  /// one. Runs become the row's number.
  void join(const EntryRing& other, std::int64_t rows, std::int64_t more);
  void clear() { state_ = {}; }

  /// Returns the number of stored steps.
  std::int64_t size() const { return count("end") - count("begin"); }
  std::int64_t capacity() const { return capacity_; }
  State& state() { return state_; }
  const State& state() const { return state_; }

 private:
  std::int64_t count(const char* name) const;
  std::int64_t slots() const;
  void resize(std::int64_t slots);
  void number_runs(std::int64_t rows);

  std::int64_t capacity_;
  State state_;
};

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
