#pragma once
// Orders units so that neighbours are similar. BM25 batches are slices of such an order.
// Represents the hits of all units as an undirected graph.

#include "passages/bm25_index.h"

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

/// A HitGraph has an edge between each unit and its hits, except itself. The weight of an edge is
/// the mean of the scores of both directions.
class HitGraph {
 public:
  struct Edge {
    std::uint32_t a, b;  ///< a < b
    float weight;
  };
  HitGraph(const Bm25& bm25, const Hits& hits, int jobs);

  std::uint32_t units() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  /// Returns all edges by descending weight; ties are broken by the lower (a, b).
  const std::vector<Edge>& edges() const { return edges_; }
  /// Returns the neighbours of a unit by descending weight of the edge, which is in `score`.
  std::span<const Hit> neighbours(std::uint32_t unit) const {
    return {neighbours_.data() + begin_[unit], begin_[unit + 1] - begin_[unit]};
  }
  /// Returns the weight of an edge; 0 if there is none.
  float weight(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<Edge> edges_;
  std::vector<std::uint64_t> begin_;
  std::vector<Hit> neighbours_;
};

}  // namespace passages
