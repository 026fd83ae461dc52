#pragma once
// Following: where enough of the last neighbours were right, the rows after them are the next
// neighbours, without a search (Alon et al. 2022, RetoMaton: pointers, without its clusters).

#include <cstdint>
#include <span>
#include <vector>

#include "infer/memory/memory_plan.h"
#include "infer/stores/neighbours.h"

namespace infer {

/// The rows after those neighbours of one stream's last token whose label came next, as long as
/// these are of the same document.
struct Pointers {
  std::vector<StoreRow> rows;

  /// `found`: of the token, row `i`; what came next.
  void advance(const Stores& stores, const Neighbours& found, std::int64_t i, std::int64_t token);
};

/// How stores were asked, a token each.
struct SearchCounts {
  std::int64_t made = 0;      ///< searches
  std::int64_t followed = 0;  ///< rows after the last neighbours instead
  std::int64_t skipped = 0;   ///< neither: the gate gives them too little
  void add(const SearchCounts& more) {
    made += more.made, followed += more.followed, skipped += more.skipped;
  }
};

/// What the stores gave for queries (R, width) of R streams, one token of each: where
/// plan.stores.follow is above 0 and a stream has so many pointers at least, the rows that these
/// point to, at most k, with exact scores, the best first; else what a search finds, unless
/// `allowed` (R) has it left out. `allowed` may be undefined: all. Adds to `counts`.
Neighbours find(const MemoryPlan& plan, const torch::Tensor& queries, const torch::Tensor& allowed,
                std::span<const Pointers> pointers, std::int64_t nprobe,
                const shard::Fingerprints& own, SearchCounts& counts);

}  // namespace infer
