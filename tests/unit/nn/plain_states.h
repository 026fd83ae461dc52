#pragma once
// Memories of past states (nn/arch/state_memory.h) token by token, with a state for each token.

#include "nn/base/model_options.h"
#include "plain_transformer.h"

namespace plain {

/// The states of one head of a layer whose weights begin with `name`, one of `heads` with weights
/// of their own.
class States {
 public:
  States(const nn::StateMemoryOptions& options, const Weights& w, std::string name,
      std::int64_t head, std::int64_t heads)
      : o_(options), w_(w), name_(std::move(name)), head_(head), heads_(heads) {}

  /// Takes the step S = moved(S) + added, and returns the matrix that the token with input x reads.
  template <class Moved>
  torch::Tensor next(const torch::Tensor& x, const Moved& moved, const torch::Tensor& added) {
    return o_.kind == "segments" ? next_segment(x, moved, added) : next_tree(x, moved, added);
  }

 private:
  torch::Tensor own(const torch::Tensor& all) const {
    const auto width = all.size(0) / heads_;
    return all.narrow(0, head_ * width, width);
  }
  torch::Tensor matrix(const char* part, const torch::Tensor& x) const {
    return w_.at(name_ + part + ".weight").mv(x);
  }

  template <class Moved>
  torch::Tensor next_segment(
      const torch::Tensor& x, const Moved& moved, const torch::Tensor& added) {
    state_ = state_.defined() ? moved(state_) + added : added;
    inputs_.push_back(own(matrix("weights", x).chunk(2)[1]));
    const auto query = own(matrix("weights", x).chunk(2)[0]), mean = torch::stack(inputs_).mean(0);
    std::vector<torch::Tensor> scores = {query.dot(mean)}, states = {state_};
    for (const auto& [of, state] : kept_) scores.push_back(query.dot(of)), states.push_back(state);
    const auto gates =
        (torch::stack(scores) / std::sqrt(static_cast<double>(query.size(0)))).softmax(0);
    auto read = torch::zeros_like(state_);
    for (std::size_t i = 0; i < states.size(); ++i)
      read = read + gates[static_cast<std::int64_t>(i)] * states[i];
    if (std::ssize(inputs_) == o_.every) {
      kept_.emplace_back(mean, state_);
      if (std::ssize(kept_) > o_.segments) kept_.erase(kept_.begin());
      inputs_.clear();
    }
    return read;
  }

  template <class Moved>
  torch::Tensor next_tree(const torch::Tensor& x, const Moved& moved, const torch::Tensor& added) {
    const auto weights = torch::softplus(own(matrix("weights", x) + w_.at(name_ + "weights.bias")));
    for (auto& part : parts_) part = moved(part);
    parts_.push_back(added);
    auto read = torch::zeros_like(added);
    const auto t = std::ssize(parts_) - 1;
    for (std::int64_t s = 0; s <= t; ++s)
      read = read + weights[std::min(level(t, s), o_.levels - 1)] / std::log(2.0) *
                        parts_[static_cast<std::size_t>(s)];
    return read;
  }

  // The largest block that ends before or at t begins at 0; without it, both count from its end.
  static std::int64_t level(std::int64_t t, std::int64_t s) {
    if (s == t) return 0;
    std::int64_t level = 1, block = 1;
    while (2 * block <= t) block *= 2, ++level;
    return s < block ? level : States::level(t - block, s - block);
  }

  nn::StateMemoryOptions o_;
  const Weights& w_;
  std::string name_;
  std::int64_t head_, heads_;
  torch::Tensor state_;
  std::vector<torch::Tensor> inputs_, parts_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> kept_;  // mean and state
};

}  // namespace plain
