#include "infer/score/with_scores.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "infer/memory/stream_memory.h"
#include "infer/score/window_forward.h"
#include "infer/windows/window_batches.h"

namespace infer {

using torch::Tensor;

class WithScores::Walk {
 public:
  Walk(std::shared_ptr<const WithModel> with, const shard::Dataset& data)
      : with_(std::move(with)),
        model_(*with_->loaded.model),
        data_(data),
        windows_(plan_windows(with_->windows, model_, with_->loaded.facts, data)),
        batches_(windows_, data) {}

  Tensor at(std::uint64_t first, std::int64_t n) {
    if (!begun_) skip_to(first);
    const std::uint64_t end = first + static_cast<std::uint64_t>(n);
    const Tensor found = torch::full({n}, NAN, torch::kFloat64);
    while (!done_ && (blocks_.empty() || blocks_.back().end() < end)) forward();
    for (const Block& block : blocks_) {
      const std::uint64_t from = std::max(first, block.first), to = std::min(end, block.end());
      if (from < to)
        found.slice(0, offset(first, from), offset(first, to))
            .copy_(block.log_prob.slice(0, offset(block.first, from), offset(block.first, to)));
    }
    while (!blocks_.empty() && blocks_.front().end() <= end) blocks_.pop_front();
    return found;
  }

 private:
  // Elements that follow each other.
  struct Block {
    std::uint64_t first;
    Tensor log_prob;
    std::uint64_t end() const { return first + static_cast<std::uint64_t>(log_prob.size(0)); }
  };

  static std::int64_t offset(std::uint64_t from, std::uint64_t to) {
    return static_cast<std::int64_t>(to - from);
  }

  // Leaves out the batches before the one that scores `first`, but for those whose State it needs.
  void skip_to(std::uint64_t first) {
    begun_ = true;
    std::int64_t number = 0, start = 0;
    for (WindowBatches all(windows_, data_); const auto batch = all.next(); ++number) {
      if (!windows_.carried || batch->spans[0].fresh) start = number;
      const Span& last = batch->spans.back();
      if (last.target + static_cast<std::uint64_t>(last.length) > first) break;
    }
    for (; start > 0; --start) batches_.next();
  }

  void forward() {
    const auto next = batches_.next();
    done_ = !next;
    if (done_) return;
    const auto& spans = next->spans;
    const Tensor weight = model_.head->weights().at(0);
    const auto batch = batch_of(spans, data_, windows_, model_.vocabulary).to(weight.device());
    const auto hidden = forward_windows(model_, windows_, batch, spans[0], state_);
    const auto rows =
        head_rows(*model_.head, scored_rows(hidden.f, spans), scored_rows(batch.targets, spans));
    const Tensor log_prob = rows.log_prob.to(torch::kCPU, torch::kFloat64);
    std::int64_t begin = 0;
    for (const Span& span : spans) {
      const std::int64_t n = span.length - span.first_scored;
      blocks_.push_back({span.target + static_cast<std::uint64_t>(span.first_scored),
                         log_prob.slice(0, begin, begin + n)});
      begin += n;
    }
  }

  std::shared_ptr<const WithModel> with_;
  nn::Model& model_;
  const shard::Dataset& data_;
  WindowPlan windows_;
  WindowBatches batches_;
  nn::State state_;
  std::deque<Block> blocks_;  // in their order
  bool begun_ = false, done_ = false;
};

WithScores::WithScores(const WithPlan& plan, const shard::Dataset& data) {
  for (const auto& model : plan.models) walks_.push_back(std::make_unique<Walk>(model, data));
}

WithScores::~WithScores() = default;

Tensor WithScores::at(std::uint64_t first, std::int64_t n) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> found;
  for (const auto& walk : walks_) found.push_back(walk->at(first, n));
  return torch::stack(found);
}

}  // namespace infer
