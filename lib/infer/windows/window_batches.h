#pragma once
// Windows that go through the model together, and where a text may be cut into parts that a process
// each reads.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "infer/windows/window_plan.h"
#include "infer/windows/windows.h"
#include "shard/dataset.h"

namespace infer {

/// Windows that share a forward pass.
struct WindowBatch {
  std::vector<Span> spans;
  std::int64_t group;  ///< which of those that stand or fall together
  bool last;           ///< the sorted batches after it are others
};

/// All windows of the data as batches of plan.batch_tokens at most, padding included; one window
/// each where State is carried. A group is a batch; of carried windows all of a stream's, since
/// each needs those before it; of sorted ones those that are sorted together.
class WindowBatches {
 public:
  /// `plan` and `data` must outlive this. `sorted`: streams of about one length share a batch.
  WindowBatches(const WindowPlan& plan, const shard::Dataset& data, bool sorted = false);
  std::optional<WindowBatch> next();

 private:
  void fill();
  void sort_some();
  const WindowPlan& plan_;
  Windows windows_;
  bool sorted_;
  std::deque<Span> ahead_;  // one, or those that are sorted
  std::optional<Span> waiting_;
  bool more_ = true;
  std::int64_t group_ = -1;
};

}  // namespace infer
