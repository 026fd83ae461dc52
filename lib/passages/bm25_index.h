#pragma once
// An inverted index of a range of units, laid out for the search of many long queries.

#include <cstdint>
#include <span>
#include <vector>

#include "core/huge_array.h"
#include "passages/bm25.h"
#include "passages/bm25_kernels.h"

namespace passages {

/// TermKinds classifies terms. A frequent term is a row of impacts for all units; any other term is
/// a list of (unit, impact). The classification depends on all units, not only the indexed ones, so
/// that scores do not depend on the division into blocks.
class TermKinds {
 public:
  explicit TermKinds(const TermLists& lists);
  static constexpr std::uint32_t kSparse = 0xFFFFFFFF;
  /// Returns the row of a term, or kSparse.
  std::uint32_t row(std::uint32_t term) const { return row_[term]; }
  std::uint32_t rows() const { return rows_; }
  /// Returns the row of each term.
  std::span<const std::uint32_t> row_of_terms() const { return row_; }

 private:
  std::vector<std::uint32_t> row_;
  std::uint32_t rows_ = 0;
};

/// A BlockView is up to kUnits consecutive units in searchable form; others own its arrays.
struct BlockView {
  /// The most units of a block, so that local numbers fit in 16 bits, and the scores of several
  /// queries and the postings of a term stay in the caches.
  static constexpr std::uint32_t kUnits = 16384;
  static constexpr std::uint32_t kTiles = kUnits / kTile;

  /// first: the first unit; tiles: number of tiles of kTile units.
  std::uint32_t first = 0, tiles = 0;
  std::size_t tile_floats = 0;           ///< TermKinds::rows() * kTile
  std::span<const std::uint32_t> begin;  ///< offset of each term's postings, and the end
  std::span<const std::uint16_t> units;  ///< unit of each posting, minus first
  std::span<const float> impacts;        ///< impact of each posting
  /// Shape (tiles, TermKinds::rows(), kTile), aligned to 64 bytes.
  std::span<const float> rows;

  /// Calls add_postings() for a sparse term; scores (tiles * kTile).
  void add(std::uint32_t term, float weight, float* scores) const {
    const auto from = begin[term];
    add_postings(units.data() + from, impacts.data() + from, begin[term + 1] - from, weight,
                 scores);
  }
  /// Prefetches the first postings of a term before add().
  void prefetch(std::uint32_t term) const {
    const auto from = begin[term];
    for (std::size_t line = 0; line < 2; ++line)
      __builtin_prefetch(units.data() + from + line * 32);
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(impacts.data() + from + line * 16);
  }
  /// Returns the rows of a tile.
  const float* tile(std::uint32_t number) const { return rows.data() + number * tile_floats; }
};

/// An IndexBlock is a block in memory.
class IndexBlock {
 public:
  /// Indexes the units [first, last), at most BlockView::kUnits.
  IndexBlock(const Bm25& bm25, const TermKinds& kinds, std::uint32_t first, std::uint32_t last);
  BlockView view() const {
    const float* const rows = rows_.size() > 0 ? &rows_[0] : nullptr;
    return {first_, tiles_, tile_floats_, begin_, units_, impacts_, {rows, rows_.size()}};
  }

  /// Returns the memory in bytes of a block of the units [first, last).
  static std::uint64_t bytes(const TermLists& lists, const TermKinds& kinds, std::uint32_t first,
                             std::uint32_t last);

 private:
  std::uint32_t first_, tiles_;
  std::size_t tile_floats_;
  std::vector<std::uint32_t> begin_;  // offset of each term's postings, and the end
  std::vector<std::uint16_t> units_;  // minus first_
  std::vector<float> impacts_;
  core::HugeArray<float> rows_;
};

}  // namespace passages
