#pragma once
// Prepares places and a rule for the kernels that compute visibility.

#include <cstdint>

#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "nn/kernels/memory_kernels.h"

namespace nn {

/// Returns the place with contiguous tensors.
TokenPositions contiguous(const TokenPositions& place);

/// Returns the scores' visibility; both places are contiguous and must outlive it.
SeenScores seen_scores(const TokenPositions& queries, const TokenPositions& entries,
                       const MemoryRule& rule);

/// Positions of queries and entries on the device of the kernels, uploaded in one copy.
struct PositionPair {
  TokenPositions queries, entries;  ///< (R), (M), contiguous, on the device
  torch::Tensor tiles;              ///< (seen_tiles(M), 7) int64: a PositionRange for each tile

  /// Requires cuda_kernels for float32 tensors of the device.
  PositionPair(const TokenPositions& queries, const TokenPositions& entries, torch::Device device);
  PositionPair(TokenPositions queries_, TokenPositions entries_, torch::Tensor tiles_)
      : queries(std::move(queries_)), entries(std::move(entries_)), tiles(std::move(tiles_)) {}
  /// Returns the view of queries [begin, end).
  PositionPair of(std::int64_t begin, std::int64_t end) const {
    return {queries.slice(begin, end), entries, tiles};
  }
  /// Returns the kernel arguments for entries [begin, end), with `begin` a multiple of kSeenTile.
  /// Leaves scores and matches unset.
  SeenRows rows(std::int64_t begin, std::int64_t end, const VisibilityRule& rule) const;
};

}  // namespace nn
