#pragma once
// Builds one datastore with several processes, each of which stores a part of the text.

#include "infer/keys/store_build.h"
#include "ranks/group.h"

namespace infer {

struct SharedBuild {
  const StoreBuildOptions& options;
  const std::vector<std::string>& files;  ///< shards, visible to all ranks
  std::string folder;                     ///< folder of the store, visible to all ranks
};

/// Stores each rank's part of the text in FOLDER.parts/N; then the first rank merges the parts into
/// FOLDER, byte-identical to the store of a single process, and removes FOLDER.parts. Collective;
/// all ranks return the store's manifest. Returns nullopt if a rank was stopped: stored rows
/// remain, and a run with the same number of ranks resumes. `of_rows` receives the tokens done and
/// the total, `merging` the progress of the merge. Throws Error{usage} for stdin, a part or an
/// addition; the errors of StoreBuild and store::merge(), on all ranks alike; and Error{rank_lost}.
std::optional<store::Manifest> build_together(const SharedBuild& what, ranks::Group& group,
    const std::function<bool()>& stop,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& of_rows,
    const store::ProgressCallback& merging);

}  // namespace infer
