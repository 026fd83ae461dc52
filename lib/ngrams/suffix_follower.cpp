#include "ngrams/suffix_follower.h"

#include <algorithm>

namespace ngrams {
namespace {
constexpr std::size_t kLeastKept = 256;  // tokens of context; avoids frequent truncation
}

SuffixFollower::SuffixFollower(std::shared_ptr<const Index> index, bool with_next)
    : index_(std::move(index)), with_next_(with_next) {
  clear();
}

void SuffixFollower::clear() {
  states_.clear();
  for (const auto* part : index_->parts()) states_.push_back({0, part->all()});
  recent_.clear();
}

bool SuffixFollower::stands(const SortedPart& part, const Ranks& ranks,
                            std::uint64_t length) const {
  return with_next_ ? part.goes_on(ranks, length) : !ranks.empty();
}

// A suffix occurs if a longer one does, so double the length and then bisect.
SuffixFollower::State SuffixFollower::longest(const SortedPart& part, std::uint64_t most) const {
  State best{0, part.all()};
  std::uint64_t absent = most + 1;  // shortest length known not to occur
  while (best.length + 1 < absent) {
    const std::uint64_t doubled = std::max<std::uint64_t>(1, 2 * best.length);
    const std::uint64_t length =
        doubled < absent ? doubled : best.length + (absent - best.length) / 2;
    const Ranks ranks = part.find(std::span(recent_).last(length));
    if (stands(part, ranks, length)) {
      best = {length, ranks};
    } else {
      absent = length;
    }
  }
  return best;
}

void SuffixFollower::push(std::uint32_t token) {
  recent_.push_back(token);
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const SortedPart& part = *index_->parts()[i];
    State& state = states_[i];
    const Ranks ranks = part.extend(state.ranks, state.length, token);
    if (stands(part, ranks, state.length + 1)) {
      state = {state.length + 1, ranks};
    } else {
      state = longest(part, state.length);
    }
    kept = std::max(kept, state.length);
  }
  if (recent_.size() > 2 * kept + kLeastKept)
    recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(kept));
}

std::uint64_t SuffixFollower::length() const {
  std::uint64_t length = 0;
  for (const State& state : states_) length = std::max(length, state.length);
  return length;
}

Match SuffixFollower::match() const {
  Match match{length(), {}};
  for (const State& state : states_)
    match.ranks.push_back(state.length == match.length ? state.ranks : Ranks{});
  return match;
}

}  // namespace ngrams
