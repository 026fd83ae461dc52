#pragma once
// Reduces the size of a store's keys once all rows are present.

#include "store/builder.h"

namespace store {

/// Projects the keys and then merges the entries of the rows in `folder` that `manifest` names.
/// Each step writes files of a new generation beside the existing ones and makes the manifest name
/// them; nothing is removed. Updates `first_rows` of the documents to the remaining rows. Equal
/// rows give equal bytes. Throws as Projection::learn() and `watch` do.
void reduce(const std::string& folder, const Reduction& reduction, Manifest& manifest,
    std::vector<std::int64_t>& first_rows, const ProgressCallback& watch);

/// Merges entries greedily (He, Neubig and Berg-Kirkpatrick 2021, "Efficient Nearest Neighbor
/// Language Models", algorithm 1). In row order, each remaining row absorbs those of its
/// `neighbours` nearest neighbours (by l2 distance) that have its label, remain, and have absorbed
/// none. keys (N, width), labels (N). Returns how many entries each row represents; 0 if it was
/// absorbed. Neighbours are exact up to 65,536 rows, else those that default_index() finds.
std::vector<std::int32_t> merged_weights(std::span<const Half> keys, std::uint64_t width,
    std::span<const std::int32_t> labels, std::uint64_t neighbours,
    const ProgressCallback& watch = {});

}  // namespace store
