#pragma once
// Orders of units in which neighbours resemble each other: what BM25 batches are slices of.

#include <cstdint>
#include <span>
#include <vector>

#include "passages/bm25.h"

namespace passages {

/// An order has every unit once. `hits` of all functions: of all units, in their order.
using UnitOrder = std::vector<std::uint32_t>;

/// The units shuffled by the seed.
UnitOrder random_order(std::uint32_t units, std::uint64_t seed);

/// The greedy chain of TRIME (Zhong, Lei and Chen 2022, algorithm 1): from a unit go to the best of
/// its hits that is not used yet; if there is none, to the next unused one in random_order().
UnitOrder greedy_chain(const Hits& hits, std::uint64_t seed);

/// A cover of the units by paths in the graph of hits, heavy and few. An edge weighs the mean of
/// its two scores. The heaviest edge that leaves all a path is taken first (a unit has two
/// neighbours at most, there is no ring); then 2-opt and Or-opt moves along edges as long as one
/// gains (Bentley 1992 with neighbour lists). Then the paths stand one after the other. The same
/// whatever `jobs`. Time grows a little faster than the units, memory is about 500 bytes a unit at
/// 20 hits.
UnitOrder path_cover(const Bm25& bm25, const Hits& hits, int jobs);

/// What an order is worth.
struct OrderWorth {
  std::uint64_t links = 0;  ///< neighbours of which one is among the hits of the other
  std::uint64_t jumps = 0;  ///< other neighbours
  double mean_score = 0;    ///< mean over neighbours of Bm25::score(earlier, later)
};
OrderWorth worth_of(const UnitOrder& order, const Bm25& bm25, const Hits& hits);

}  // namespace passages
