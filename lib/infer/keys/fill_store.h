#pragma once
// From a walk over a data set to the rows of a store.

#include <cstdint>
#include <functional>
#include <string>

#include "infer/keys/entries.h"
#include "nn/base/torch.h"
#include "store/builder.h"

namespace infer {

struct FillWatch {
  std::function<void(std::uint64_t entries)> progress = {};
  std::function<bool()> stop = {};  ///< asked after each block
  double commit_every_s = 10;
};

/// Gives the builder the entries of the walk that are in `range`, from where it stands, and commits
/// them from time to time. `most_known` below 1: not those to whose label the model alone gives
/// more (the builder's plan leaves out). With carried windows the State goes to FOLDER/step-N/ (as
/// a training checkpoint) before each commit; remove_states() is for when the store is whole.
/// False: stopped, and what was added is committed.
bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
                const std::string& folder, torch::Device device, const FillWatch& watch = {},
                double most_known = 1);
/// Removes the States that fill_store() left in the folder.
void remove_states(const std::string& folder);

}  // namespace infer
