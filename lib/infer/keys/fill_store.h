#pragma once
// Writes the entries of a walk to the rows of a store.

#include <cstdint>
#include <functional>
#include <string>

#include "infer/keys/entries.h"
#include "nn/base/torch.h"
#include "store/builder.h"

namespace infer {

struct FillCallbacks {
  std::function<void(std::uint64_t entries)> progress = {};
  std::function<bool()> stop = {};  ///< polled after each block
  double commit_every_s = 10;
};

/// Adds the walk's entries in `range` to the builder, from its present row on, and commits them
/// periodically. With `most_known` < 1, skips entries whose label has a higher model probability
/// (the builder's plan must skip positions). With carried windows, writes the State to
/// FOLDER/step-N/ (as a training checkpoint) before each commit; call remove_states() when the
/// store is complete. Returns false if stopped; added rows are committed.
bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
                const std::string& folder, torch::Device device, const FillCallbacks& watch = {},
                double most_known = 1);
/// Removes the States that fill_store() wrote to the folder.
void remove_states(const std::string& folder);

}  // namespace infer
