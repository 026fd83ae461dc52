#include "infer/keys/build_together.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/io.h"
#include "store/merge.h"

namespace infer {
namespace {

using core::Code;
using core::fail;

void check(const SharedBuild& what) {
  if (what.options.adds() || !what.options.part.empty())
    fail(Code::usage, "--ranks: makes a store of its own; leave --append, --part and --merge out");
  if (what.files.empty() ||
      std::find(what.files.begin(), what.files.end(), "-") != what.files.end())
    fail(Code::usage, "FILE: several ranks cannot read one stdin; give files");
}

// Whether the store is there, from an earlier call; throws if it is another.
bool is_there(const SharedBuild& what) {
  return std::filesystem::exists(what.folder + "/" + store::kManifestName) &&
         StoreBuild(what.options, what.files, what.folder, what.given).complete();
}

}  // namespace

std::optional<store::Manifest> build_together(
    const SharedBuild& what, ranks::Group& group, const std::function<bool()>& stop,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& of_rows,
    const store::Watch& merging) {
  check(what);
  const std::string parts = what.folder + ".parts";
  const auto part = [&](std::int64_t rank) { return fmt::format("{}/{}", parts, rank + 1); };
  if (group.first_does([&] { return std::int64_t{is_there(what)}; }) != 0)
    return store::read_manifest(what.folder);

  bool stopped = false;
  group.together([&] {
    StoreBuildOptions own = what.options;
    own.part = fmt::format("{}/{}", group.rank() + 1, group.size());
    own.index = "exact";  // the whole's is made of the whole's keys
    core::make_folders(parts);
    StoreBuild build(own, what.files, part(group.rank()), what.given);
    FillWatch watch;
    watch.progress = [&](std::uint64_t rows) { of_rows(rows, build.count()); };
    watch.stop = stop;
    stopped = !build.fill(watch);
    if (!stopped) build.finish({});
  });
  if (group.any(stopped ? 1 : 0) != 0) return std::nullopt;

  group.first_does([&] {
    std::vector<std::string> all;
    for (std::int64_t rank = 0; rank < group.size(); ++rank) all.push_back(part(rank));
    store::merge(all, what.folder, what.options.index, merging);
    std::filesystem::remove_all(parts);
    return std::int64_t{0};
  });
  return store::read_manifest(what.folder);
}

}  // namespace infer
