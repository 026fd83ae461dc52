#include "infer/windows/window_batches.h"

#include <algorithm>

namespace infer {
namespace {

// Pairs are sorted within this number of batches: enough for little padding, few enough for bounded
// memory. (With stores, the search takes most of the time.)
constexpr std::int64_t kSortedBatches = 16;

std::uint64_t length_of(const std::vector<Span>& stream) {
  return stream.back().target + static_cast<std::uint64_t>(stream.back().length) -
         stream.front().target;
}

}  // namespace

WindowBatches::WindowBatches(const WindowPlan& plan, const shard::Dataset& data, bool sorted)
    : plan_(plan), windows_(plan, data.documents(), data.size()), sorted_(sorted) {
  fill();
}

std::optional<WindowBatch> WindowBatches::next() {
  if (ahead_.empty()) return std::nullopt;
  WindowBatch batch;
  std::int64_t longest = 0;
  while (!ahead_.empty()) {
    longest = std::max(longest, ahead_.front().length);
    const auto tokens = longest * static_cast<std::int64_t>(batch.spans.size() + 1);
    if (!batch.spans.empty() && (plan_.carried || tokens > plan_.batch_tokens)) break;
    batch.spans.push_back(ahead_.front());
    ahead_.pop_front();
    if (!sorted_) fill();
  }
  batch.last = ahead_.empty();
  if (!sorted_ && (!plan_.carried || batch.spans[0].fresh)) ++group_;
  batch.group = group_;
  if (sorted_ && batch.last) fill();
  return batch;
}

void WindowBatches::fill() {
  if (sorted_) {
    sort_some();
  } else if (const auto span = windows_.next()) {
    ahead_.push_back(*span);
  }
}

// Sorts streams within a few batches, so that streams of similar length share a forward pass.
void WindowBatches::sort_some() {
  std::vector<std::vector<Span>> streams;
  std::int64_t tokens = 0;
  ++group_;
  for (; more_; more_ = (waiting_ = windows_.next()).has_value()) {
    if (waiting_) {
      if (waiting_->fresh) {
        if (tokens >= kSortedBatches * plan_.batch_tokens) break;
        streams.emplace_back();
      }
      streams.back().push_back(*waiting_);
      tokens += waiting_->length;
    }
  }
  std::stable_sort(streams.begin(), streams.end(),
                   [](const auto& a, const auto& b) { return length_of(a) < length_of(b); });
  for (const auto& stream : streams) ahead_.insert(ahead_.end(), stream.begin(), stream.end());
}

}  // namespace infer
