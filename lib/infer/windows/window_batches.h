#pragma once
// Groups windows into batches, and into parts that can be scored by separate processes.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "infer/windows/window_plan.h"
#include "infer/windows/windows.h"
#include "shard/dataset.h"

namespace infer {

/// Windows of one forward pass.
struct WindowBatch {
  std::vector<Span> spans;
  std::int64_t group;  ///< index of the indivisible group
  bool last;           ///< last batch of a set of sorted batches
};

/// Divides all windows into batches of at most plan.batch_tokens, including padding; with carried
/// State, into single windows. A group is a batch; with carried State, all windows of a stream,
/// because each needs its predecessors; with sorted windows, those that are sorted together.
class WindowBatches {
 public:
  /// `plan` and `data` must outlive the object. `sorted`: streams of similar length share a batch.
  WindowBatches(const WindowPlan& plan, const shard::Dataset& data, bool sorted = false);
  std::optional<WindowBatch> next();

 private:
  void fill();
  void sort_some();
  const WindowPlan& plan_;
  Windows windows_;
  bool sorted_;
  std::deque<Span> ahead_;  // one span, or those being sorted
  std::optional<Span> waiting_;
  bool more_ = true;
  std::int64_t group_ = -1;
};

}  // namespace infer
