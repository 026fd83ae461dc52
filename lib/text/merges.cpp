#include "text/merges.h"

#include <algorithm>
#include <bit>

namespace text {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::size_t kShort = 48;  // symbols up to which looking at all pairs beats a heap

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | right;
}

std::size_t slot_of(std::uint64_t pair, std::size_t n_slots) {
  return (pair * 0x9E3779B97F4A7C15u ^ pair >> 32) * 0xD6E8FEB86659FD93u >>
         (64 - std::countr_zero(n_slots));
}

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges) : merges_(std::move(merges)) {
  if (merges_.empty()) return;
  slots_.resize(std::bit_ceil(merges_.size() * 2 + 2));
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const std::uint64_t pair = pair_of(merges_[i].left, merges_[i].right);
    std::size_t at = slot_of(pair, slots_.size());
    while (slots_[at].rank != kNone && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    // Of a pair listed twice the last place counts, as where a list becomes a map.
    slots_[at] = {pair, static_cast<std::uint32_t>(i), merges_[i].result};
  }
}

std::uint32_t MergeTable::rank_of(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = slot_of(pair, slots_.size());
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].pair == pair) return slots_[at].rank;
    if (slots_[at].rank == kNone) return kNone;
  }
}

void MergeTable::apply(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  if (symbols.size() < 2 || merges_.empty()) return;
  if (symbols.size() <= kShort) {
    apply_short(symbols, scratch);
  } else {
    apply_long(symbols, scratch);
  }
}

void MergeTable::apply_short(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  auto& rank = scratch.rank;  // rank[i]: of the pair (i, i + 1)
  std::size_t n = symbols.size();
  rank.resize(n);
  for (std::size_t i = 0; i + 1 < n; ++i) rank[i] = rank_of(symbols[i], symbols[i + 1]);
  while (n > 1) {
    const std::size_t at = static_cast<std::size_t>(
        std::min_element(rank.begin(), rank.begin() + static_cast<std::ptrdiff_t>(n - 1)) -
        rank.begin());
    if (rank[at] == kNone) break;
    symbols[at] = merges_[rank[at]].result;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(at + 2),
              symbols.begin() + static_cast<std::ptrdiff_t>(n),
              symbols.begin() + static_cast<std::ptrdiff_t>(at + 1));
    std::copy(rank.begin() + static_cast<std::ptrdiff_t>(at + 2),
              rank.begin() + static_cast<std::ptrdiff_t>(n),
              rank.begin() + static_cast<std::ptrdiff_t>(at + 1));
    --n;
    if (at + 1 < n) rank[at] = rank_of(symbols[at], symbols[at + 1]);
    if (at > 0) rank[at - 1] = rank_of(symbols[at - 1], symbols[at]);
  }
  symbols.resize(n);
}

void MergeTable::apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  const auto n = static_cast<std::uint32_t>(symbols.size());
  auto& [rank, next, previous, heap] = scratch;
  rank.resize(n);
  next.resize(n);
  previous.resize(n);
  heap.clear();
  // An entry is rank << 32 | place; one whose pair has changed since is passed over.
  for (std::uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    rank[i] = i + 1 < n ? rank_of(symbols[i], symbols[i + 1]) : kNone;
    if (rank[i] != kNone) heap.push_back(pair_of(rank[i], i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto rerank = [&](std::uint32_t i) {
    rank[i] = next[i] == kEnd ? kNone : rank_of(symbols[i], symbols[next[i]]);
    if (rank[i] == kNone) return;
    heap.push_back(pair_of(rank[i], i));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const std::uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    if (rank[at] != top >> 32) continue;
    symbols[at] = merges_[rank[at]].result;
    const std::uint32_t gone = next[at];
    rank[gone] = kNone;
    next[at] = next[gone];
    if (next[at] != kEnd) previous[next[at]] = at;
    rerank(at);
    if (previous[at] != kEnd) rerank(previous[at]);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i != kEnd; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace text
