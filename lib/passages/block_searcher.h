#pragma once
// The best units of blocks for queries that are lists of terms.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/huge_array.h"
#include "passages/bm25.h"
#include "passages/bm25_index.h"

namespace passages {

/// Who uses it keeps the terms and ranges.
struct Bm25Query {
  std::span<const TermCount> terms;         ///< each below the number of the index's terms
  std::span<const UnitRange> without = {};  ///< no answer
};

/// Queries share a block of the index while it is in the cache. One a thread.
class BlockSearcher {
 public:
  static constexpr std::size_t kBatch = 128;

  /// Of each term its idf, and its row in the blocks or TermKinds::kSparse; both must outlive it.
  BlockSearcher(std::span<const float> idf, std::span<const std::uint32_t> row, std::uint32_t top);

  /// Puts into `hits`, from first_query on, the best units of each of at most kBatch queries among
  /// those of the blocks and the hits that are there already.
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
    float threshold = 0;    // what a score must reach to be among them
  };
  static constexpr std::size_t kGroup = 8;  // as many queries as have their scores in the cache

  void prepare(Query& query, const Bm25Query& asked, std::span<const Hit> best) const;
  void score(const BlockView& block, std::span<Query> queries);
  void select(const BlockView& block, std::span<const float> highest, const float* scores,
              Query& query);

  std::span<const float> idf_;
  std::span<const std::uint32_t> row_;
  std::uint32_t top_;
  std::vector<Query> queries_;
  core::HugeArray<float> scores_;  // (kGroup, BlockView::kUnits)
  float highest_[kGroup][BlockView::kTiles];
  std::vector<float> order_;
};

}  // namespace passages
