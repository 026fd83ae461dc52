#pragma once
// The last steps of streams, as memory entries.

#include <cstdint>
#include <limits>

#include "nn/base/memory_rule.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

/// The last `capacity` steps of rows that advance together: the positions of a text, or of the rows
/// of a batch being decoded. All it holds is in a State, which selects, resets,
/// saves and loads it. Buffers begin small and grow to nearly twice the capacity, so that what is
/// held always lies in one piece, oldest first, a step's rows side by side, and a step is moved
/// once at most on average. Not thread safe.
///
///   State::tensors  "keys" (steps, rows, ..., d), "labels", "run", "segment", "position"
///                   (steps, rows, ...), by step; run + 1, so that zero is padding
///   State::counts   "begin", "end": the steps held
class EntryRing {
 public:
  explicit EntryRing(std::int64_t capacity);

  /// T steps: keys (T, rows, ..., d), labels and place (T, rows, ...). Copied, without gradient.
  void append(const torch::Tensor& keys, const torch::Tensor& labels, const Place& place);
  /// The steps held, without the `skip` newest, and of those the `at_most` newest: keys (M, d),
  /// labels and place (M), step by step. Keys and labels are views, good until the next call of
  /// append or select.
  Entries view(std::int64_t skip = 0,
               std::int64_t at_most = std::numeric_limits<std::int64_t>::max()) const;
  /// Row i becomes what row rows[i] was: rows int64, as many as there are to be from now on (beam
  /// search, rows that ended). Runs become the row's number.
  void select(const torch::Tensor& rows);
  void clear() { state_ = {}; }

  /// Steps held.
  std::int64_t size() const { return count("end") - count("begin"); }
  std::int64_t capacity() const { return capacity_; }
  State& state() { return state_; }
  const State& state() const { return state_; }

 private:
  std::int64_t count(const char* name) const;
  std::int64_t slots() const;
  void resize(std::int64_t slots);

  std::int64_t capacity_;
  State state_;
};

}  // namespace nn
