#pragma once
// The hits of all units as a graph without directions.

#include <cstdint>
#include <span>
#include <vector>

#include "passages/bm25.h"

namespace passages {

/// Unit and hit are neighbours, a unit and itself are not; an edge weighs the mean of the scores of
/// both directions.
class HitGraph {
 public:
  struct Edge {
    std::uint32_t a, b;  ///< a < b
    float weight;
  };
  HitGraph(const Bm25& bm25, const Hits& hits, int jobs);

  std::uint32_t units() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  /// All edges, the heaviest first; of equal ones the lowest (a, b).
  const std::vector<Edge>& edges() const { return edges_; }
  /// The neighbours of a unit, the heaviest edge first; `score` is its weight.
  std::span<const Hit> neighbours(std::uint32_t unit) const {
    return {neighbours_.data() + begin_[unit], begin_[unit + 1] - begin_[unit]};
  }
  /// 0 where there is no edge.
  float weight(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<Edge> edges_;
  std::vector<std::uint64_t> begin_;
  std::vector<Hit> neighbours_;
};

}  // namespace passages
