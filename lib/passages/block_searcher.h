#pragma once
// Searches blocks of the index for the best units of queries, which are lists of terms.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/huge_array.h"
#include "passages/bm25.h"
#include "passages/bm25_index.h"

namespace passages {

/// A Bm25Query is one query; the caller keeps the terms and ranges alive.
struct Bm25Query {
  std::span<const TermCount> terms;         ///< each below the number of terms of the index
  std::span<const UnitRange> without = {};  ///< units that are excluded from the answer
};

/// A BlockSearcher searches a batch of queries in a block of the index while the block is in the
/// cache. Each thread needs its own.
class BlockSearcher {
 public:
  static constexpr std::size_t kBatch = 128;

  /// `idf` holds the idf of each term, and `row` its row in the blocks or TermKinds::kSparse; both
  /// must outlive the searcher.
  BlockSearcher(std::span<const float> idf, std::span<const std::uint32_t> row, std::uint32_t top);

  /// Merges into `hits`, from first_query on, the best units of the blocks for each of at most
  /// kBatch queries.
  void search(std::span<const BlockView> blocks, std::span<const Bm25Query> queries,
              std::uint32_t first_query, Hits& hits);

 private:
  struct SparseTerm {
    std::uint32_t term;
    float weight;
  };
  struct Query {
    std::vector<SparseTerm> sparse;
    std::vector<DenseTerm> dense;
    std::span<const UnitRange> without;
    std::vector<Hit> best;  // the best so far, in any order
    float threshold = 0;    // the lowest score that enters `best`
  };
  static constexpr std::size_t kGroup = 8;  // number of queries whose scores fit in the cache

  void prepare(Query& query, const Bm25Query& asked, std::span<const Hit> best) const;
  void score(const BlockView& block, std::span<Query> queries);
  void select(const BlockView& block, std::span<const float> highest, const float* scores,
              Query& query);

  std::span<const float> idf_;
  std::span<const std::uint32_t> row_;
  std::uint32_t top_;
  std::vector<Query> queries_;
  core::HugeArray<float> scores_;  // shape (kGroup, BlockView::kUnits)
  float highest_[kGroup][BlockView::kTiles];
  std::vector<float> order_;
};

}  // namespace passages
