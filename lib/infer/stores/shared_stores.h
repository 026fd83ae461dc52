#pragma once
// Datastores distributed over ranks: each rank opens some stores and searches them for all ranks.

#include "infer/stores/stores.h"
#include "ranks/group.h"

namespace infer {

/// Opens this rank's folders and exchanges the facts of the stores with other ranks. Collective.
/// The result finds what one process with all stores would find, stores of rank 0 first. Its
/// searches are collective: all ranks search together and make no other collective calls meanwhile.
/// A rank without further queries calls finish(). Throws Error{usage} if no rank has stores, the
/// errors of Stores, and Error{rank_lost}.
std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
    const model::Loaded& loaded, std::shared_ptr<ranks::Group> group);

}  // namespace infer
