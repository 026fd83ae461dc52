#include "text/tokenizer/merges.h"

namespace text {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::size_t kShort = 48;  // number of symbols below which scanning all pairs beats a heap

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges, const std::vector<std::uint32_t>& ranks)
    : merges_(std::move(merges)) {
  if (merges_.empty()) return;
  if (merges_.size() > kMaxMerges) core::bad_data("more than {} merges", kMaxMerges);
  slots_ = core::HugeArray<std::uint64_t>(std::bit_ceil(merges_.size() * 2 + 2));
  shift_ = 64 - std::countr_zero(slots_.size());
  filter_.resize((std::size_t{1} << kFilterBits) / 64);
  for (const Merge& merge : merges_) results_.push_back(merge.result);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (results_[ranks[i]] != merges_[i].result) results_[ranks[i]] = kNone;
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const auto& [left, right, result] = merges_[i];
    const std::size_t rank = ranks.empty() ? i : ranks[i];
    if (std::max({left, right, result}) >= kMaxIds)
      core::bad_data("a merge with an id that is not below {}", kMaxIds);
    const std::uint64_t pair = pair_of(left, right), hash = hash_of(pair);
    std::size_t at = hash >> shift_;
    while (slots_[at] != 0 && slots_[at] >> 22 != pair + 1) at = (at + 1) & (slots_.size() - 1);
    // The last of duplicate pairs wins, as when a list becomes a map.
    slots_[at] = (pair + 1) << 22 | rank;
    const std::uint64_t bit = hash >> (64 - kFilterBits);
    filter_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
    if (results_[rank] == kNone) mixed_[pair] = result;
  }
  small_.resize(kSmall * kSmall);
  for (std::uint32_t left = 0; left < kSmall; ++left)
    for (std::uint32_t right = 0; right < kSmall; ++right)
      small_[left * kSmall + right] = rank_of(left, right);
}

void MergeTable::apply(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  if (symbols.size() < 2 || merges_.empty()) return;
  if (symbols.size() <= kShort) {
    apply_short(symbols);
  } else {
    apply_long(symbols, scratch);
  }
}

void MergeTable::apply_short(std::vector<std::uint32_t>& symbols) const {
  std::uint32_t rank[kShort];  // rank[i] is that of the pair (i, i + 1)
  std::uint32_t* const symbol = symbols.data();
  std::size_t n = symbols.size();
  for (std::size_t i = 0; i + 1 < n; ++i) rank[i] = first_rank_of(symbol[i], symbol[i + 1]);
  while (n > 1) {
    std::size_t at = 0;
    for (std::size_t i = 1; i + 1 < n; ++i)
      if (rank[i] < rank[at]) at = i;
    if (rank[at] == kNone) break;
    symbol[at] = result_of(rank[at], symbol[at], symbol[at + 1]);
    --n;
    for (std::size_t i = at + 1; i < n; ++i) symbol[i] = symbol[i + 1];
    for (std::size_t i = at + 1; i + 1 < n; ++i) rank[i] = rank[i + 1];
    if (at + 1 < n) rank[at] = rank_of(symbol[at], symbol[at + 1]);
    if (at > 0) rank[at - 1] = rank_of(symbol[at - 1], symbol[at]);
  }
  symbols.resize(n);
}

void MergeTable::apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  const auto n = static_cast<std::uint32_t>(symbols.size());
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  auto& rank = scratch.rank;
  auto& heap = scratch.heap;
  next.resize(n);
  previous.resize(n);
  rank.resize(n);
  heap.clear();
  // An entry is rank << 32 | position; entries of changed pairs are skipped.
  const auto push = [&](std::uint32_t i) {
    heap.push_back(static_cast<std::uint64_t>(rank[i]) << 32 | i);
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    rank[i] = i + 1 < n ? first_rank_of(symbols[i], symbols[i + 1]) : kNone;
    if (rank[i] != kNone) push(i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto look_again = [&](std::uint32_t i) {
    rank[i] = next[i] == kEnd ? kNone : rank_of(symbols[i], symbols[next[i]]);
    if (rank[i] == kNone) return;
    push(i);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const std::uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    if (rank[at] != top >> 32) continue;
    const std::uint32_t gone = next[at];
    symbols[at] = result_of(rank[at], symbols[at], symbols[gone]);
    rank[gone] = kNone;
    next[at] = next[gone];
    if (next[at] != kEnd) previous[next[at]] = at;
    look_again(at);
    if (previous[at] != kEnd) look_again(previous[at]);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i != kEnd; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace text
