#pragma once
// Less than a model's keys of all positions: what is made of a store's rows once all are there.

#include <cstdint>
#include <string>
#include <vector>

#include "store/builder.h"
#include "store/half.h"
#include "store/manifest.h"

namespace store {

/// Of the rows in `folder` that `manifest` names: first keys are projected, then entries merged.
/// Each writes files of a new generation beside those that are there and makes the manifest name
/// them; nothing is removed. `first_rows` of documents become those of the rows that stay. The same
/// rows give the same bytes. Throws as Projection::learn() and `watch` do.
void reduce(const std::string& folder, const Reduction& reduction, Manifest& manifest,
            std::vector<std::int64_t>& first_rows, const Watch& watch);

/// Greedy merging (He, Neubig and Berg-Kirkpatrick 2021, "Efficient Nearest Neighbor Language
/// Models", algorithm 1): row after row, one that is still there takes up those of its `neighbours`
/// nearest others, as points, that have its label, are still there and took up none themselves.
/// keys (N, width), labels (N). Returns of each row how many it stands for, 0: another stands for
/// it. Up to 65,536 rows neighbours are exact, else those that default_index() finds.
std::vector<std::int32_t> merged_weights(std::span<const Half> keys, std::uint64_t width,
                                         std::span<const std::int32_t> labels,
                                         std::uint64_t neighbours, const Watch& watch = {});

}  // namespace store
