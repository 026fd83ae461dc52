#include "text/learn/bpe_learner.h"

namespace text {
namespace {

constexpr std::uint32_t kFree = 0xFFFFFFFF;

std::uint64_t hash_of(std::uint64_t pair) {
  const std::uint64_t mixed = (pair * 0x9E3779B97F4A7C15u ^ pair >> 32) * 0xD6E8FEB86659FD93u;
  return mixed ^ mixed >> 32;
}

}  // namespace

void BpeLearner::add(std::span<const std::uint32_t> symbols, std::uint64_t count) {
  words_.push_back({symbols_.size(), static_cast<std::uint32_t>(symbols.size()),
      static_cast<std::int64_t>(count)});
  symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
}

void BpeLearner::grow() {
  slots_.assign(std::max<std::size_t>(slots_.size() * 2, 1 << 12), kFree);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = hash_of(entries_[i].pair) & mask;
    while (slots_[at] != kFree) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

std::uint32_t BpeLearner::entry_of(std::uint64_t pair) {
  if (entries_.size() * 2 >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_of(pair) & mask;
  while (slots_[at] != kFree && entries_[slots_[at]].pair != pair) at = (at + 1) & mask;
  if (slots_[at] == kFree) {
    slots_[at] = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
    entries_.back().pair = pair;
  }
  return slots_[at];
}

void BpeLearner::change(
    std::uint32_t left, std::uint32_t right, std::int64_t by, std::uint32_t word) {
  const std::uint32_t number = entry_of(pair_of(left, right));
  Entry& entry = entries_[number];
  entry.count += by;
  if (by < 0) return;
  if (entry.words.empty() || entry.words.back() != word) entry.words.push_back(word);
  if (entry.touched) return;
  entry.touched = true;
  touched_.push_back(number);
}

void BpeLearner::count_all() {
  counted_ = true;
  for (std::uint32_t w = 0; w < words_.size(); ++w) {
    const Word& word = words_[w];
    const std::uint32_t* s = symbols_.data() + word.begin;
    for (std::uint32_t i = 0; i + 1 < word.size; ++i) change(s[i], s[i + 1], word.count, w);
  }
  for (const std::uint32_t number : touched_) {
    entries_[number].touched = false;
    heap_.push_back({entries_[number].count, entries_[number].pair});
  }
  touched_.clear();
  std::make_heap(heap_.begin(), heap_.end());
}

std::optional<BpeLearner::Pair> BpeLearner::best() {
  if (!counted_) count_all();
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    const std::int64_t count = entries_[entry_of(top.pair)].count;
    if (count == top.count && count > 0)
      return Pair{
          static_cast<std::uint32_t>(top.pair >> 32), static_cast<std::uint32_t>(top.pair), count};
    // A count that has grown since then has its own candidate.
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (count > 0 && count < top.count) {
      heap_.push_back({count, top.pair});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  return std::nullopt;
}

void BpeLearner::merge(std::uint32_t left, std::uint32_t right, std::uint32_t result) {
  const std::uint32_t merged = entry_of(pair_of(left, right));
  const std::vector<std::uint32_t> words = std::move(entries_[merged].words);
  entries_[merged].words = {};
  for (const std::uint32_t w : words) {
    Word& word = words_[w];
    std::uint32_t* const s = symbols_.data() + word.begin;
    std::uint32_t n = 0;  // number of symbols written
    for (std::uint32_t i = 0; i < word.size;) {
      if (i + 1 == word.size || s[i] != left || s[i + 1] != right) {
        s[n++] = s[i++];
        continue;
      }
      // s[n - 1] is the previous symbol after the merges so far. s[i + 2] is the next symbol.
      change(left, right, -word.count, w);
      if (n > 0) {
        change(s[n - 1], left, -word.count, w);
        change(s[n - 1], result, word.count, w);
      }
      if (i + 2 < word.size) {
        change(right, s[i + 2], -word.count, w);
        change(result, s[i + 2], word.count, w);
      }
      s[n++] = result;
      i += 2;
    }
    word.size = n;
  }
  for (const std::uint32_t number : touched_) {
    Entry& entry = entries_[number];
    entry.touched = false;
    if (entry.count <= 0) continue;
    heap_.push_back({entry.count, entry.pair});
    std::push_heap(heap_.begin(), heap_.end());
  }
  touched_.clear();
}

}  // namespace text
