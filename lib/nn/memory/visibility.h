#pragma once
// From places and a rule to the kernels that settle who sees whom.

#include <cstdint>

#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "nn/kernels/memory_kernels.h"

namespace nn {

/// The place with its three tensors contiguous.
Place contiguous(const Place& place);

/// Both places contiguous; they must outlive it.
SeenScores seen_scores(const Place& queries, const Place& entries, const MemoryRule& rule);

/// Who asks and who is asked, where a device's kernels read it: given once, in one copy.
struct Sighting {
  Place queries, entries;  ///< (R), (M), contiguous, on the device
  torch::Tensor tiles;     ///< (seen_tiles(M), 7) int64: a PlaceRange each

  /// Needs cuda_kernels for float32 tensors of the device.
  Sighting(const Place& queries, const Place& entries, torch::Device device);
  Sighting(Place queries_, Place entries_, torch::Tensor tiles_)
      : queries(std::move(queries_)), entries(std::move(entries_)), tiles(std::move(tiles_)) {}
  /// Queries [begin, end).
  Sighting of(std::int64_t begin, std::int64_t end) const {
    return {queries.slice(begin, end), entries, tiles};
  }
  /// What the kernels are told of entries [begin, end), `begin` a multiple of kSeenTile. The scores
  /// and who is right are left open.
  SeenRows rows(std::int64_t begin, std::int64_t end, const SightRule& rule) const;
};

}  // namespace nn
