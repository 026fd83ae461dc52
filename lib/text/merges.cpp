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

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges) : merges_(std::move(merges)) {
  if (merges_.empty()) return;
  slots_.resize(std::bit_ceil(merges_.size() * 2 + 2));
  shift_ = 64 - std::countr_zero(slots_.size());
  filter_.resize((std::size_t{1} << kFilterBits) / 64);
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const std::uint64_t pair = pair_of(merges_[i].left, merges_[i].right);
    const std::uint64_t hash = hash_of(pair), bit = hash >> (64 - kFilterBits);
    std::size_t at = hash >> shift_;
    while (slots_[at].found != kNone && slots_[at].pair != pair)
      at = (at + 1) & (slots_.size() - 1);
    // Of a pair listed twice the last place counts, as where a list becomes a map.
    slots_[at] = {pair, pair_of(static_cast<std::uint32_t>(i), merges_[i].result)};
    filter_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
  }
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
  std::uint64_t found[kShort];  // found[i]: of the pair (i, i + 1)
  std::uint32_t* const symbol = symbols.data();
  std::size_t n = symbols.size();
  for (std::size_t i = 0; i + 1 < n; ++i) found[i] = look_up_bytes(symbol[i], symbol[i + 1]);
  while (n > 1) {
    std::size_t at = 0;
    for (std::size_t i = 1; i + 1 < n; ++i)
      if (found[i] < found[at]) at = i;
    if (found[at] == kNone) break;
    symbol[at] = static_cast<std::uint32_t>(found[at]);
    --n;
    for (std::size_t i = at + 1; i < n; ++i) symbol[i] = symbol[i + 1];
    for (std::size_t i = at + 1; i + 1 < n; ++i) found[i] = found[i + 1];
    if (at + 1 < n) found[at] = look_up(symbol[at], symbol[at + 1]);
    if (at > 0) found[at - 1] = look_up(symbol[at - 1], symbol[at]);
  }
  symbols.resize(n);
}

void MergeTable::apply_long(std::vector<std::uint32_t>& symbols, Scratch& scratch) const {
  const auto n = static_cast<std::uint32_t>(symbols.size());
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  auto& found = scratch.found;
  auto& heap = scratch.heap;
  found.resize(n);
  next.resize(n);
  previous.resize(n);
  heap.clear();
  // An entry is rank << 32 | place; one whose pair has changed since is passed over.
  const auto push = [&](std::uint32_t i) {
    heap.push_back((found[i] & ~std::uint64_t{0xFFFFFFFF}) | i);
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    found[i] = i + 1 < n ? look_up_bytes(symbols[i], symbols[i + 1]) : kNone;
    if (found[i] != kNone) push(i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto look_again = [&](std::uint32_t i) {
    found[i] = next[i] == kEnd ? kNone : look_up(symbols[i], symbols[next[i]]);
    if (found[i] == kNone) return;
    push(i);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const std::uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    if (found[at] == kNone || found[at] >> 32 != top >> 32) continue;
    symbols[at] = static_cast<std::uint32_t>(found[at]);
    const std::uint32_t gone = next[at];
    found[gone] = kNone;
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
