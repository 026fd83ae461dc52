#pragma once
// The arithmetic of nn::MemoryBlock on raw float32 memory: who sees whom is settled for tiles of 64
// entries at once, so that what a query does not see costs nothing and what it sees whole is a
// plain loop. SeenScores does it on the CPU, seen_..._cuda on a GPU.

#include <cstdint>
#include <span>
#include <vector>

#include "nn/kernels/who_sees.h"

namespace nn {

constexpr std::int64_t kSeenTile = 64;  // entries
/// How many tiles so many entries have.
constexpr std::int64_t seen_tiles(std::int64_t entries) {
  return (entries + kSeenTile - 1) / kSeenTile;
}

/// The scores of R queries against M entries, rows contiguous. The pointers must outlive it. A
/// call works on the rows [begin, end): threads share one object and cut the rows among them.
class SeenScores {
 public:
  SeenScores(const PlaceIds& queries, const PlaceIds& entries, const SightRule& rule);

  /// row[j] tells whether the query sees entry j.
  void visible(std::int64_t query, bool* row) const;

  /// maxima[r] becomes the larger of itself and the visible scale * scores of row r.
  void raise(const float* scores, float scale, std::int64_t begin, std::int64_t end,
             float* maxima) const;

  /// scores -> exp(scale * score - maxima[r]), 0 where unseen (and where float32 cannot hold it);
  /// their sums, and those of the entries whose label is the row's target, are added.
  void exponentiate(float* scores, float scale, const float* maxima, const std::int32_t* labels,
                    const std::int32_t* targets, std::int64_t begin, std::int64_t end,
                    float* sum_all, float* sum_positive) const;

  /// The sums of exponentiate() at each of `scales`, without the scores being changed; `maxima` are
  /// of the scores themselves. Those of scale i are added to sum_all[i * stride + r].
  void sum(const float* scores, std::span<const float> scales, const float* maxima,
           const std::int32_t* labels, const std::int32_t* targets, std::int64_t begin,
           std::int64_t end, float* sum_all, float* sum_positive, std::int64_t stride) const;

  /// exp -> exp * (every[r] + [label is the row's target] matching[r]).
  void differentiate(float* exp, const std::int32_t* labels, const std::int32_t* targets,
                     const float* every, const float* matching, std::int64_t begin,
                     std::int64_t end) const;

 private:
  struct Tile {
    std::int64_t begin, end;
    PlaceRange range;
  };
  void mask(std::int64_t query, const Tile& tile, bool* visible) const;
  template <class Score>
  void exponentiate_row(std::int64_t query, Score* row, float scale, float max,
                        const std::int32_t* labels, std::int32_t target, float* sum_all,
                        float* sum_positive) const;
  template <class Whole, class Part, class Hidden>
  void each_tile(std::int64_t query, const Whole& whole, const Part& part,
                 const Hidden& hidden) const;

  PlaceIds queries_, entries_;
  SightRule rule_;
  std::vector<Tile> tiles_;
};

/// The same on a GPU, whose pointers these are: a block a row, sums in a fixed order.
struct SeenRows {
  PlaceIds queries, entries;  // (R), (M)
  const PlaceRange* tiles;    // (seen_tiles(M)): of the entries
  SightRule rule;
  float* scores;  // (R, M)
  float scale;
  const std::int64_t *targets, *labels;  // (R), (M)
};

/// Each returns a cudaError_t, 0 if the launch went well; `stream` is a cudaStream_t.
/// The ranges of the entries' tiles.
int seen_tiles_cuda(const PlaceIds& entries, PlaceRange* tiles, void* stream);
/// SeenScores::raise, of all rows.
int seen_raise_cuda(const SeenRows& s, float* maxima, void* stream);
/// SeenScores::exponentiate.
int seen_exponentiate_cuda(const SeenRows& s, const float* maxima, float* sum_all,
                           float* sum_positive, void* stream);
/// SeenScores::differentiate; scores are what exponentiate left.
int seen_differentiate_cuda(const SeenRows& s, const float* every, const float* matching,
                            void* stream);

}  // namespace nn
