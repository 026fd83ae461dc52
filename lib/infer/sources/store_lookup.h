#pragma once
// Looks up datastore neighbours for the tokens of a stream: by a search; not at all if the gate's
// weight is too small; or by following pointers. If enough of the last neighbours were right, the
// rows after them are the next neighbours (Alon et al. 2022, RetoMaton: pointers without clusters).

#include "infer/sources/store_source.h"

namespace infer {

/// Pointers of a stream: the rows after those neighbours of the last token whose label came next,
/// within the document of the neighbour.
struct Pointers {
  std::vector<StoreRow> rows;

  /// Advances by the neighbours `found` in row `i` of the last token, given the next token.
  void advance(const Stores& stores, const Neighbours& found, std::int64_t i, std::int64_t token);
};

/// Looks up neighbours for queries (R, width) of R streams, one token each. If stores.follow > 0
/// and a stream has at least that many pointers, returns the rows they point to, at most k, with
/// exact scores, best first. Otherwise searches, unless `allowed` (R) is false for the row;
/// undefined `allowed` permits all. Adds to `counts`.
Neighbours find(const StorePlan& stores, const torch::Tensor& queries, const torch::Tensor& allowed,
    std::span<const Pointers> pointers, std::int64_t nprobe, const shard::Fingerprints& own,
    SearchCounts& counts);

/// Looks up neighbours for whole segments of text; each segment starts without pointers.
Neighbours find(const StorePlan& stores, const Lookup& lookup, const torch::Tensor& allowed,
    std::int64_t nprobe, SearchCounts& counts);

/// Number of nearest entries in the gate's features.
inline constexpr std::int64_t kGateNearest = 32;
/// Returns the gate's features (R, 4), NaN without neighbours: the nearest score; its difference to
/// the last considered score; the fraction of entries with the nearest's label; the number of
/// distinct labels divided by the number of entries.
torch::Tensor gate_features_of(const Neighbours& found);

}  // namespace infer
