#include "infer/generate/generator_beam.h"

#include <algorithm>
#include <cmath>

#include "infer/generate/generator_draw.h"

namespace infer {
namespace {

struct Candidate {
  double log_prob;
  std::size_t parent;
  std::int64_t word;
};

}  // namespace

std::string_view name_of(Finish finish) {
  switch (finish) {
    case Finish::end:
      return "end";
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
  }
  return "";
}

Beam::Beam(std::int64_t width, double length_penalty, std::int64_t max_tokens)
    : width_(static_cast<std::size_t>(width)),
      length_penalty_(length_penalty),
      max_tokens_(max_tokens),
      live_(1) {}

double Beam::score(const Hypothesis& hypothesis) const {
  return hypothesis.log_prob /
         std::pow(static_cast<double>(hypothesis.tokens.size()), length_penalty_);
}

std::vector<std::int64_t> Beam::advance(const std::vector<std::span<const float>>& rows,
                                        const Ends& ends) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < live_.size(); ++i)
    for (const auto word : best_words(rows[i], 2 * static_cast<std::int64_t>(width_)))
      candidates.push_back({live_[i].log_prob + rows[i][static_cast<std::size_t>(word)], i, word});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.log_prob > b.log_prob; });
  std::vector<Hypothesis> next;
  std::vector<std::int64_t> parents;
  for (std::size_t rank = 0; rank < candidates.size() && next.size() < width_; ++rank) {
    const auto& candidate = candidates[rank];
    const auto finish = ends(candidate.parent, candidate.word);
    if (finish && rank >= width_) continue;
    Hypothesis hypothesis = live_[candidate.parent];
    hypothesis.tokens.push_back(candidate.word);
    hypothesis.log_prob = candidate.log_prob;
    if (finish) {
      hypothesis.finish = *finish;
      ended_.push_back(std::move(hypothesis));
    } else {
      next.push_back(std::move(hypothesis));
      parents.push_back(static_cast<std::int64_t>(candidate.parent));
    }
  }
  live_ = std::move(next);
  ++length_;
  done_ = ended_.size() >= width_ || live_.empty() || length_ == max_tokens_;
  if (done_) parents.clear();
  return parents;
}

std::vector<Hypothesis> Beam::best(std::int64_t n) const {
  std::vector<Hypothesis> all = ended_;
  if (ended_.size() < width_) all.insert(all.end(), live_.begin(), live_.end());
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return score(a) > score(b); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(n)));
  return all;
}

}  // namespace infer
