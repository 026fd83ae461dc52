#include "infer/sources/with_scores.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "infer/sources/gate.h"
#include "infer/sources/head_rows.h"
#include "infer/windows/window_batches.h"
#include "infer/windows/window_forward.h"

namespace infer {

using torch::Tensor;

class WithScores::Walk {
 public:
  // `gated`: also computes the model's confidence.
  Walk(std::shared_ptr<const BesideModel> with, const shard::Dataset& data, bool gated)
      : with_(std::move(with)),
        gated_(gated),
        model_(*with_->loaded.model),
        data_(data),
        windows_(plan_windows(with_->windows, model_, with_->loaded.facts, data)),
        batches_(windows_, data) {}

  // Returns log p (n, 1), followed by the confidence if requested.
  Tensor at(std::uint64_t first, std::int64_t n) {
    if (!begun_) skip_to(first);
    const std::uint64_t end = first + static_cast<std::uint64_t>(n);
    const Tensor found =
        torch::full({n, gated_ ? 1 + std::ssize(kConfidence) : 1}, NAN, torch::kFloat64);
    while (!done_ && (blocks_.empty() || blocks_.back().end() < end)) forward();
    for (const Block& block : blocks_) {
      const std::uint64_t from = std::max(first, block.first), to = std::min(end, block.end());
      if (from < to)
        found.slice(0, offset(first, from), offset(first, to))
            .copy_(block.rows.slice(0, offset(block.first, from), offset(block.first, to)));
    }
    while (!blocks_.empty() && blocks_.front().end() <= end) blocks_.pop_front();
    return found;
  }

 private:
  // Consecutive elements.
  struct Block {
    std::uint64_t first;
    Tensor rows;  // as returned by at()
    std::uint64_t end() const { return first + static_cast<std::uint64_t>(rows.size(0)); }
  };

  static std::int64_t offset(std::uint64_t from, std::uint64_t to) {
    return static_cast<std::int64_t>(to - from);
  }

  // Skips the batches before the one that scores `first`, except those whose State it needs.
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
    const auto host = batch_of(spans, data_, windows_, model_.vocabulary);
    const auto batch = host.to(weight.device());
    const auto hidden = forward_windows(model_, windows_, batch, spans[0], state_);
    const auto rows =
        head_rows(*model_.head, scored_rows(hidden.f, spans),
                  {scored_rows(batch.targets, spans), scored_rows(host.targets, spans)}, gated_);
    Tensor all = rows.log_prob.to(torch::kFloat64).unsqueeze(1);
    if (gated_) all = torch::cat({all, rows.confidence}, 1);
    all = all.cpu();
    std::int64_t begin = 0;
    for (const Span& span : spans) {
      const std::int64_t n = span.length - span.first_scored;
      blocks_.push_back({span.target + static_cast<std::uint64_t>(span.first_scored),
                         all.slice(0, begin, begin + n)});
      begin += n;
    }
  }

  std::shared_ptr<const BesideModel> with_;
  bool gated_;
  nn::Model& model_;
  const shard::Dataset& data_;
  WindowPlan windows_;
  WindowBatches batches_;
  nn::State state_;
  std::deque<Block> blocks_;  // in order
  bool begun_ = false, done_ = false;
};

WithScores::WithScores(const WithPlan& plan, const shard::Dataset& data) : gated_(plan.gated()) {
  for (const auto& model : plan.models)
    walks_.push_back(std::make_unique<Walk>(model, data, std::ssize(walks_) == gated_));
}

WithScores::~WithScores() = default;

Tensor WithScores::at(std::uint64_t first, std::int64_t n) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> found;
  for (const auto& walk : walks_) {
    const Tensor rows = walk->at(first, n);
    if (std::ssize(found) == gated_) confidence_ = rows.slice(1, 1);
    found.push_back(rows.select(1, 0));
  }
  return torch::stack(found);
}

}  // namespace infer
