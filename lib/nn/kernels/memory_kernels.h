#pragma once
// The arithmetic of nn::MemoryBlock on raw float32 memory. Visibility is decided for tiles of 64
// entries at once. A tile that a query does not see costs nothing; a tile that it sees completely
// is a plain loop. SeenScores runs on the CPU, the functions seen_..._cuda on a GPU.

#include <span>
#include <vector>

#include "nn/kernels/visibility_rule.h"

namespace nn {

constexpr std::int64_t kSeenTile = 64;  // entries per tile
/// Returns the number of tiles of `entries` entries.
constexpr std::int64_t seen_tiles(std::int64_t entries) {
  return (entries + kSeenTile - 1) / kSeenTile;
}

/// The scores of R queries against M entries, with contiguous rows. The pointers must outlive the
/// object. A call computes rows [begin, end), so that threads share one object.
class SeenScores {
 public:
  SeenScores(const PositionIds& queries, const PositionIds& entries, const VisibilityRule& rule);

  /// Sets row[j] to whether the query sees entry j.
  void visible(std::int64_t query, bool* row) const;

  /// maxima[r] = max(maxima[r], scale * score of each visible entry of row r).
  void raise(
      const float* scores, float scale, std::int64_t begin, std::int64_t end, float* maxima) const;

  /// Replaces scores by exp(scale * score - maxima[r]), with 0 for invisible entries and for
  /// float32 underflow. Adds each row's sum to one output, and the sum over entries labelled with
  /// the row's target to the other.
  void exponentiate(float* scores, float scale, const float* maxima, const std::int32_t* labels,
      const std::int32_t* targets, std::int64_t begin, std::int64_t end, float* sum_all,
      float* sum_positive) const;

  /// Computes the sums of exponentiate() for each of `scales` without changing the scores. `maxima`
  /// are maxima of the unscaled scores. The sums of scale i are added to sum_all[i * stride + r].
  void sum(const float* scores, std::span<const float> scales, const float* maxima,
      const std::int32_t* labels, const std::int32_t* targets, std::int64_t begin, std::int64_t end,
      float* sum_all, float* sum_positive, std::int64_t stride) const;

  /// Replaces exp by exp * (every[r] + [label is the row's target] matching[r]).
  void differentiate(float* exp, const std::int32_t* labels, const std::int32_t* targets,
      const float* every, const float* matching, std::int64_t begin, std::int64_t end) const;

 private:
  struct Tile {
    std::int64_t begin, end;
    PositionRange range;
  };
  void mask(std::int64_t query, const Tile& tile, bool* visible) const;
  template <class Score>
  void exponentiate_row(std::int64_t query, Score* row, float scale, float max,
      const std::int32_t* labels, std::int32_t target, float* sum_all, float* sum_positive) const;
  template <class Whole, class Part, class Hidden>
  void each_tile(
      std::int64_t query, const Whole& whole, const Part& part, const Hidden& hidden) const;

  PositionIds queries_, entries_;
  VisibilityRule rule_;
  std::vector<Tile> tiles_;
};

/// The GPU's counterpart of SeenScores. All pointers are device pointers. A block computes a row
/// and adds in a fixed order.
struct SeenRows {
  PositionIds queries, entries;  // (R), (M)
  const PositionRange* tiles;    // (seen_tiles(M)): ranges of the entries
  VisibilityRule rule;
  float* scores;  // (R, M)
  float scale;
  const std::int64_t *targets, *labels;  // (R), (M)
};

/// Writes the range of ids of each tile of entries. This function and the next three take a
/// cudaStream_t as `stream` and return a cudaError_t, 0 if the launch succeeds.
int seen_tiles_cuda(const PositionIds& entries, PositionRange* tiles, void* stream);
/// Computes SeenScores::raise for all rows.
int seen_raise_cuda(const SeenRows& s, float* maxima, void* stream);
/// Computes SeenScores::exponentiate for all rows.
int seen_exponentiate_cuda(
    const SeenRows& s, const float* maxima, float* sum_all, float* sum_positive, void* stream);
/// Computes SeenScores::differentiate for all rows. scores must hold the result of exponentiate.
int seen_differentiate_cuda(
    const SeenRows& s, const float* every, const float* matching, void* stream);

}  // namespace nn
