#pragma once
// Orders units so that neighbours are similar. BM25 batches are slices of such an order.

#include <cstdint>
#include <span>
#include <vector>

#include "passages/bm25.h"

namespace passages {

/// A UnitOrder has every unit once. In all functions, `hits` holds the hits of all units, in order.
using UnitOrder = std::vector<std::uint32_t>;

/// Shuffles the units with the seed.
UnitOrder random_order(std::uint32_t units, std::uint64_t seed);

/// Builds the greedy chain of TRIME (Zhong, Lei and Chen 2022, algorithm 1): each unit is followed
/// by the best of its hits that is not used yet; if there is none, by the next unused unit in
/// random_order().
UnitOrder greedy_chain(const Hits& hits, std::uint64_t seed);

/// Covers the units by few paths of large weight in the graph of hits, and returns the paths in
/// sequence. The weight of an edge is the mean of its two scores. The algorithm adds edges in order
/// of weight and skips an edge that would give a unit three neighbours or close a cycle. It then
/// applies 2-opt and Or-opt moves along edges while one improves the weight (Bentley 1992, with
/// neighbour lists). The result does not depend on `jobs`. Time grows slightly faster than the
/// number of units; memory is about 500 bytes per unit at 20 hits.
UnitOrder path_cover(const Bm25& bm25, const Hits& hits, int jobs);

/// OrderWorth is the quality of an order.
struct OrderWorth {
  /// Neighbouring pairs in which one unit is a hit of the other.
  std::uint64_t links = 0;
  std::uint64_t jumps = 0;  ///< other neighbouring pairs
  double mean_score = 0;    ///< mean of Bm25::score(earlier, later) over neighbours
};
OrderWorth worth_of(const UnitOrder& order, const Bm25& bm25, const Hits& hits);

}  // namespace passages
