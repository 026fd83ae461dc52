#pragma once
// How stores are asked for the tokens of a stream: by a search, not at all where a gate gives them
// too little, or by following: where enough of the last neighbours were right, the rows after them
// are the next neighbours (Alon et al. 2022, RetoMaton: pointers, without its clusters).

#include <cstdint>
#include <span>
#include <vector>

#include "infer/sources/memory_plan.h"
#include "infer/stores/neighbours.h"

namespace infer {

/// The rows after those neighbours of one stream's last token whose label came next, as long as
/// these are of the same document.
struct Pointers {
  std::vector<StoreRow> rows;

  /// `found`: of the token, row `i`; what came next.
  void advance(const Stores& stores, const Neighbours& found, std::int64_t i, std::int64_t token);
};

/// What the stores gave for queries (R, width) of R streams, one token of each: where
/// stores.follow is above 0 and a stream has so many pointers at least, the rows that these
/// point to, at most k, with exact scores, the best first; else what a search finds, unless
/// `allowed` (R) has it left out. `allowed` may be undefined: all. Adds to `counts`.
Neighbours find(const StorePlan& stores, const torch::Tensor& queries, const torch::Tensor& allowed,
                std::span<const Pointers> pointers, std::int64_t nprobe,
                const shard::Fingerprints& own, SearchCounts& counts);

/// The same of whole stretches of text, each of which begins without pointers.
Neighbours find(const StorePlan& stores, const Ask& ask, const torch::Tensor& allowed,
                std::int64_t nprobe, SearchCounts& counts);

/// How many of the nearest entries a gate looks at.
inline constexpr std::int64_t kGateNearest = 32;
/// What a gate sees, (R, 4), NaN where nothing was found: the nearest score; how far the last that
/// is looked at is below it; the share of them with the nearest's label; the distinct labels among
/// them, over how many they are.
torch::Tensor gate_features_of(const Neighbours& found);

}  // namespace infer
