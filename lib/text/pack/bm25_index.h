#pragma once
// An inverted index of some of the units, laid out for the search of many long queries.

#include <cstdint>
#include <vector>

#include "core/huge_array.h"
#include "text/pack/bm25.h"
#include "text/pack/bm25_kernels.h"

namespace text {

/// Terms that many units have are rows of impacts of all units, the others lists of (unit, impact).
/// Which is which depends on all units, not on those indexed, so that scores do not either.
class TermKinds {
 public:
  explicit TermKinds(const TermLists& lists);
  static constexpr std::uint32_t kSparse = 0xFFFFFFFF;
  /// The row of a term, or kSparse.
  std::uint32_t row(std::uint32_t term) const { return row_[term]; }
  std::uint32_t rows() const { return rows_; }

 private:
  std::vector<std::uint32_t> row_;
  std::uint32_t rows_ = 0;
};

/// Up to kUnits consecutive units.
class IndexBlock {
 public:
  /// A bound of the local numbers of units, and so chosen that their scores for some queries and
  /// the postings of a term stay in the caches.
  static constexpr std::uint32_t kUnits = 16384;
  static constexpr std::uint32_t kTiles = kUnits / kTile;

  /// The units [first, last).
  IndexBlock(const Bm25& bm25, const TermKinds& kinds, std::uint32_t first, std::uint32_t last);
  std::uint32_t first() const { return first_; }
  std::uint32_t tiles() const { return tiles_; }
  /// add_postings() of a sparse term; scores (tiles() * kTile).
  void add(std::uint32_t term, float weight, float* scores) const {
    const auto begin = begin_[term];
    add_postings(units_.data() + begin, impacts_.data() + begin, begin_[term + 1] - begin, weight,
                 scores);
  }
  /// Asks for the first postings of a term that is added soon.
  void prefetch(std::uint32_t term) const {
    const auto begin = begin_[term];
    for (std::size_t line = 0; line < 2; ++line)
      __builtin_prefetch(units_.data() + begin + line * 32);
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(impacts_.data() + begin + line * 16);
  }
  /// The rows (kinds.rows(), kTile) of a tile.
  const float* rows(std::uint32_t tile) const { return &rows_[tile * tile_floats_]; }

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

}  // namespace text
