#pragma once
// One datastore by several processes, each of which stores a part of the text.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "infer/keys/store_build.h"
#include "ranks/group.h"

namespace infer {

struct SharedBuild {
  const StoreBuildOptions& options;
  const std::set<std::string>& given;     ///< see StoreBuild
  const std::vector<std::string>& files;  ///< shards that all ranks see
  std::string folder;                     ///< of the store, which all see
};

/// Each rank stores its part of the text in FOLDER.parts/N; then the first makes one store of all
/// in FOLDER, byte by byte that of one process, and FOLDER.parts goes. All ranks call it, and all
/// return what the store holds; nothing if one was stopped: what was stored is kept, and as many
/// ranks go on with it. `of_rows` is told the tokens so far and of how many, `merging` what the
/// first does after that. Throws Error{usage} for stdin and for a part or an addition,
/// what StoreBuild and store::merge() do, on all ranks alike, and Error{rank_lost}.
std::optional<store::Manifest> build_together(
    const SharedBuild& what, ranks::Group& group, const std::function<bool()>& stop,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& of_rows,
    const store::Watch& merging);

}  // namespace infer
