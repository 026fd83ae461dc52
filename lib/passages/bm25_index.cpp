#include "passages/bm25_index.h"

#include <algorithm>
#include <utility>

namespace passages {
namespace {

// A posting costs about as much as this many units of a row, including a margin for the row's
// memory.
constexpr std::uint32_t kDenseShare = 8;

}  // namespace

TermKinds::TermKinds(const TermLists& lists) : row_(lists.terms(), kSparse) {
  const std::uint32_t least = std::max<std::uint32_t>(lists.size() / kDenseShare, 1);
  for (std::uint32_t term = 0; term < lists.terms(); ++term)
    if (lists.units_with(term) > least) row_[term] = rows_++;
}

IndexBlock::IndexBlock(const Bm25& bm25, const TermKinds& kinds, std::uint32_t first,
                       std::uint32_t last)
    : first_(first),
      tiles_(static_cast<std::uint32_t>((last - first + kTile - 1) / kTile)),
      tile_floats_(std::size_t{kinds.rows()} * kTile),
      begin_(std::size_t{bm25.lists().terms()} + 1),
      rows_(tiles_ * tile_floats_) {
  const auto& lists = bm25.lists();
  // Holds counts, then the begins of the terms' postings, then (while filling) their ends.
  for (std::uint32_t unit = first; unit < last; ++unit)
    for (const auto& [term, count] : lists.list(unit))
      if (kinds.row(term) == TermKinds::kSparse) ++begin_[term];
  std::uint32_t n = 0;
  for (auto& begin : begin_) n += std::exchange(begin, n);
  units_.resize(n);
  impacts_.resize(n);
  for (std::uint32_t unit = first; unit < last; ++unit) {
    const float norm = bm25.norm(unit);
    const std::uint32_t local = unit - first;
    float* rows = tile_floats_ > 0 ? &rows_[local / kTile * tile_floats_ + local % kTile] : nullptr;
    for (const auto& [term, count] : lists.list(unit)) {
      const float impact = Bm25::impact(count, norm);
      if (const auto row = kinds.row(term); row != TermKinds::kSparse) {
        rows[row * kTile] = impact;
        continue;
      }
      const auto at = begin_[term]++;
      units_[at] = static_cast<std::uint16_t>(local);
      impacts_[at] = impact;
    }
  }
  // Each begin is now its term's end, which is the next term's begin.
  std::rotate(begin_.begin(), begin_.end() - 1, begin_.end());
  begin_.front() = 0;
}

std::uint64_t IndexBlock::bytes(const TermLists& lists, const TermKinds& kinds, std::uint32_t first,
                                std::uint32_t last) {
  const std::uint64_t postings = lists.begin(last) - lists.begin(first);
  return postings * (sizeof(std::uint16_t) + sizeof(float)) +
         std::uint64_t{lists.terms()} * sizeof(std::uint32_t) +
         std::uint64_t{last - first} * kinds.rows() * sizeof(float);
}

}  // namespace passages
