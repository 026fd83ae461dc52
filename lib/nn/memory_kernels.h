#pragma once
// The arithmetic of nn::MemoryBlock on raw float32 memory: who sees whom is settled for tiles of 64
// entries at once, so that what a query does not see costs nothing and what it sees whole is a
// plain loop.

#include <cstdint>
#include <vector>

namespace nn {

/// Place of N tokens, see nn::Place.
struct PlaceIds {
  const std::int64_t *run, *segment, *position;
  std::int64_t size;
};

/// What of nn::MemoryRule says who sees whom.
struct SightRule {
  bool local, far, ext, drop_own_segment;
  std::int64_t reach;  ///< 0: no limit
};

/// The scores of R queries against M entries, rows contiguous. The pointers must outlive it. A
/// call works on the rows [begin, end): threads share one object and cut the rows among them.
class SeenScores {
 public:
  SeenScores(const PlaceIds& queries, const PlaceIds& entries, const SightRule& rule);

  /// row[j] tells whether the query sees entry j: MemoryRule::sees.
  void visible(std::int64_t query, bool* row) const;

  /// maxima[r] becomes the larger of itself and the visible scale * scores of row r.
  void raise(const float* scores, float scale, std::int64_t begin, std::int64_t end,
             float* maxima) const;

  /// scores -> exp(scale * score - maxima[r]), 0 where unseen (and where float32 cannot hold it);
  /// their sums, and those of the entries whose label is the row's target, are added.
  void exponentiate(float* scores, float scale, const float* maxima, const std::int32_t* labels,
                    const std::int32_t* targets, std::int64_t begin, std::int64_t end,
                    float* sum_all, float* sum_positive) const;

  /// exp -> exp * (every[r] + [label is the row's target] matching[r]).
  void differentiate(float* exp, const std::int32_t* labels, const std::int32_t* targets,
                     const float* every, const float* matching, std::int64_t begin,
                     std::int64_t end) const;

 private:
  struct Tile {
    std::int64_t begin, end;
    std::int64_t run_min, run_max, segment_min, segment_max, position_min, position_max;
    bool padded;  // some entry of it
  };
  enum class Seen { none, some, all };
  Seen seen(std::int64_t query, const Tile& tile) const;
  void mask(std::int64_t query, const Tile& tile, bool* visible) const;
  template <class Whole, class Part, class Hidden>
  void each_tile(std::int64_t query, const Whole& whole, const Part& part,
                 const Hidden& hidden) const;

  PlaceIds queries_, entries_;
  SightRule rule_;
  std::vector<Tile> tiles_;
};

}  // namespace nn
