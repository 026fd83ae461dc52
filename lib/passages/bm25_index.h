#pragma once
// An inverted index of some of the units, laid out for the search of many long queries.

#include <cstdint>
#include <span>
#include <vector>

#include "core/huge_array.h"
#include "passages/bm25.h"
#include "passages/bm25_kernels.h"

namespace passages {

/// Terms that many units have are rows of impacts of all units, the others lists of (unit, impact).
/// Which is which depends on all units, not on those indexed, so that scores do not either.
class TermKinds {
 public:
  explicit TermKinds(const TermLists& lists);
  static constexpr std::uint32_t kSparse = 0xFFFFFFFF;
  /// The row of a term, or kSparse.
  std::uint32_t row(std::uint32_t term) const { return row_[term]; }
  std::uint32_t rows() const { return rows_; }
  /// Of each term.
  std::span<const std::uint32_t> row_of_terms() const { return row_; }

 private:
  std::vector<std::uint32_t> row_;
  std::uint32_t rows_ = 0;
};

/// Up to kUnits consecutive units as they are searched, whoever holds the arrays.
struct BlockView {
  /// A bound of the local numbers of units, and so chosen that their scores for some queries and
  /// the postings of a term stay in the caches.
  static constexpr std::uint32_t kUnits = 16384;
  static constexpr std::uint32_t kTiles = kUnits / kTile;

  std::uint32_t first = 0, tiles = 0;    ///< unit; tiles of kTile units
  std::size_t tile_floats = 0;           ///< TermKinds::rows() * kTile
  std::span<const std::uint32_t> begin;  ///< of each term's postings, and the end
  std::span<const std::uint16_t> units;  ///< of postings, less first
  std::span<const float> impacts;        ///< of postings
  std::span<const float> rows;           ///< (tiles, TermKinds::rows(), kTile), at 64 bytes

  /// add_postings() of a sparse term; scores (tiles * kTile).
  void add(std::uint32_t term, float weight, float* scores) const {
    const auto from = begin[term];
    add_postings(units.data() + from, impacts.data() + from, begin[term + 1] - from, weight,
                 scores);
  }
  /// Asks for the first postings of a term that is added soon.
  void prefetch(std::uint32_t term) const {
    const auto from = begin[term];
    for (std::size_t line = 0; line < 2; ++line)
      __builtin_prefetch(units.data() + from + line * 32);
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(impacts.data() + from + line * 16);
  }
  /// The rows of a tile.
  const float* tile(std::uint32_t number) const { return rows.data() + number * tile_floats; }
};

/// A block in memory.
class IndexBlock {
 public:
  /// The units [first, last), at most BlockView::kUnits.
  IndexBlock(const Bm25& bm25, const TermKinds& kinds, std::uint32_t first, std::uint32_t last);
  BlockView view() const {
    const float* const rows = rows_.size() > 0 ? &rows_[0] : nullptr;
    return {first_, tiles_, tile_floats_, begin_, units_, impacts_, {rows, rows_.size()}};
  }

  /// Memory of a block of the units [first, last).
  static std::uint64_t bytes(const TermLists& lists, const TermKinds& kinds, std::uint32_t first,
                             std::uint32_t last);

 private:
  std::uint32_t first_, tiles_;
  std::size_t tile_floats_;
  std::vector<std::uint32_t> begin_;  // of each term's postings, and the end
  std::vector<std::uint16_t> units_;  // less first_
  std::vector<float> impacts_;
  core::HugeArray<float> rows_;
};

}  // namespace passages
