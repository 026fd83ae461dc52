#include "ngrams/next_tokens.h"

namespace ngrams {
namespace {

constexpr std::size_t kWorthKeeping = 32;  // shorter results are recounted faster than found

// Visits run after run: scans a narrow range, and skips through a wide one.
void count_part(
    const SortedPart& part, Ranks ranks, std::uint64_t depth, std::vector<TokenCount>& counts) {
  counts.clear();
  if (depth == 0 && ranks == part.all()) {
    for (std::uint32_t token = 0; token < part.mark(); ++token)
      if (const auto n = part.first(token).size(); n > 0) counts.push_back({token, n});
    return;
  }
  while (!ranks.empty()) {
    const std::uint32_t token = part.token_of(ranks.begin, depth);
    if (token == part.mark()) break;  // the mark sorts last
    const std::uint64_t end = part.run_end(ranks, depth);
    counts.push_back({token, end - ranks.begin});
    ranks.begin = end;
  }
}

constexpr std::size_t kLeastKept = 256;  // tokens of context; avoids frequent truncation

}  // namespace

NextTokens::NextTokens(std::shared_ptr<const Index> index, std::size_t most_kept)
    : index_(std::move(index)), most_kept_(most_kept) {}

std::size_t NextTokens::Hash::operator()(const Key& key) const {
  return (key.begin * 0x9E3779B97F4A7C15U) ^ (key.length * 0xC2B2AE3D27D4EB4FU) ^ key.part;
}

void NextTokens::count(const Match& match) {
  counts_.clear();
  for (std::size_t i = 0; i < match.ranks.size(); ++i) {
    if (match.ranks[i].empty()) continue;
    count_part(*index_->parts()[i], match.ranks[i], match.length, part_counts_);
    if (counts_.empty()) {
      counts_.swap(part_counts_);
      continue;
    }
    sum_.clear();
    auto a = counts_.begin(), b = part_counts_.begin();
    while (a != counts_.end() || b != part_counts_.end()) {
      if (b == part_counts_.end() || (a != counts_.end() && a->token < b->token)) {
        sum_.push_back(*a++);
      } else if (a == counts_.end() || b->token < a->token) {
        sum_.push_back(*b++);
      } else {
        sum_.push_back({a->token, a->count + b->count});
        ++a, ++b;
      }
    }
    counts_.swap(sum_);
  }
}

const std::vector<TokenCount>& NextTokens::of(const Match& match) {
  // The first ranks identify a match.
  const auto first =
      std::ranges::find_if(match.ranks, [](const Ranks& ranks) { return !ranks.empty(); });
  if (first == match.ranks.end()) {
    counts_.clear();
    return counts_;
  }
  const Key key{static_cast<std::size_t>(first - match.ranks.begin()), match.length, first->begin};
  if (const auto known = kept_.find(key); known != kept_.end()) return known->second;
  count(match);
  if (counts_.size() < kWorthKeeping || counts_.size() > most_kept_) return counts_;
  if (n_kept_ + counts_.size() > most_kept_) kept_.clear(), n_kept_ = 0;
  n_kept_ += counts_.size();
  return kept_[key] = counts_;
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

bool SuffixFollower::stands(
    const SortedPart& part, const Ranks& ranks, std::uint64_t length) const {
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

std::uint64_t SuffixFollower::push(std::uint32_t token) {
  recent_.push_back(token);
  std::uint64_t kept = 0, count = 0;
  const std::uint64_t matched = length();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const SortedPart& part = *index_->parts()[i];
    State& state = states_[i];
    const Ranks ranks = part.extend(state.ranks, state.length, token);
    if (state.length == matched) count += ranks.size();
    state = stands(part, ranks, state.length + 1) ? State{state.length + 1, ranks}
                                                  : longest(part, state.length);
    kept = std::max(kept, state.length);
  }
  if (recent_.size() > 2 * kept + kLeastKept)
    recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(kept));
  return count;
}

std::uint64_t SuffixFollower::length() const { return core::max_of(states_, &State::length); }

Match SuffixFollower::match() const {
  const auto longest = length();
  return {longest, core::mapped(states_, [&](const State& state) {
            return state.length == longest ? state.ranks : Ranks{};
          })};
}

}  // namespace ngrams
