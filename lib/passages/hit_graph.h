#pragma once
// Represents the hits of all units as an undirected graph.

#include <cstdint>
#include <span>
#include <vector>

#include "passages/bm25.h"

namespace passages {

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
