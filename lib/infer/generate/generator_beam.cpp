#include "infer/generate/generator_beam.h"

#include "infer/generate/generator_draw.h"

namespace infer {
namespace {

struct Candidate {
  double log_prob;
  std::size_t parent;
  std::int64_t token;
};

}  // namespace

std::string_view name_of(Finish finish) {
  switch (finish) {
    case Finish::end: return "end";
    case Finish::stop: return "stop";
    case Finish::length: return "length";
  }
  return "";
}

Beam::Beam(std::int64_t width, double length_penalty, std::int64_t max_tokens)
    : width_(static_cast<std::size_t>(width)), length_penalty_(length_penalty),
      max_tokens_(max_tokens), live_(1) {}

double Beam::score(const Hypothesis& hypothesis) const {
  return hypothesis.log_prob /
         std::pow(static_cast<double>(hypothesis.tokens.size()), length_penalty_);
}

struct Beam::Step {
  std::vector<Hypothesis> live, ended;
  std::vector<std::int64_t> parents;  // parents of the live hypotheses
};

// Makes a step from the `most` best tokens of each hypothesis. Returns nothing if all of one
// hypothesis's tokens are used and more may be needed.
std::optional<Beam::Step> Beam::step(
    const std::vector<std::span<const float>>& rows, std::int64_t most, const Ends& ends) const {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < live_.size(); ++i)
    for (const auto token : best_tokens(rows[i], most))
      candidates.push_back(
          {live_[i].log_prob + rows[i][static_cast<std::size_t>(token)], i, token});
  std::ranges::stable_sort(candidates, std::greater(), &Candidate::log_prob);
  Step made;
  std::vector<std::int64_t> used(live_.size());  // number of tokens used
  for (std::size_t rank = 0; rank < candidates.size() && made.live.size() < width_; ++rank) {
    const auto& candidate = candidates[rank];
    const auto ending = ends(candidate.parent, candidate.token);
    if (!ending || rank < width_) {
      Hypothesis hypothesis = live_[candidate.parent];
      hypothesis.tokens.push_back(candidate.token);
      hypothesis.log_prob = candidate.log_prob;
      if (ending) {
        hypothesis.ending = *ending;
        made.ended.push_back(std::move(hypothesis));
      } else {
        made.live.push_back(std::move(hypothesis));
        made.parents.push_back(static_cast<std::int64_t>(candidate.parent));
      }
    }
    const bool all_used =
        ++used[candidate.parent] == most && most < std::ssize(rows[candidate.parent]);
    if (all_used && made.live.size() < width_) return std::nullopt;
  }
  return made;
}

void Beam::end(Hypothesis hypothesis) {
  const auto same = std::find_if(ended_.begin(), ended_.end(), [&](const Hypothesis& other) {
    return hypothesis.ending.finish == Finish::stop && other.ending.finish == Finish::stop &&
           hypothesis.ending.text == other.ending.text;
  });
  if (same == ended_.end()) ended_.push_back(std::move(hypothesis));
  else if (score(hypothesis) > score(*same)) *same = std::move(hypothesis);
}

std::vector<std::int64_t> Beam::advance(
    const std::vector<std::span<const float>>& rows, const Ends& ends) {
  // Twice the width is enough while at most as many tokens as the width end a text.
  auto most = 2 * static_cast<std::int64_t>(width_);
  auto made = step(rows, most, ends);
  while (!made) made = step(rows, most *= 4, ends);
  live_ = std::move(made->live);
  for (auto& hypothesis : made->ended) end(std::move(hypothesis));
  ++length_;
  done_ = ended_.size() >= width_ || live_.empty() || length_ == max_tokens_;
  if (done_) made->parents.clear();
  return made->parents;
}

std::vector<Hypothesis> Beam::best(std::int64_t n) const {
  std::vector<Hypothesis> all = ended_;
  if (ended_.size() < width_) all.insert(all.end(), live_.begin(), live_.end());
  std::ranges::stable_sort(all, std::greater(), [&](const auto& of) { return score(of); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(n)));
  return all;
}

}  // namespace infer
