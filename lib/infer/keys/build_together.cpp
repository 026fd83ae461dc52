#include "infer/keys/build_together.h"

#include <filesystem>

#include "store/merge.h"

namespace infer {
namespace {

using core::Code;
using core::fail;

void check(const SharedBuild& what) {
  if (!what.options.append.empty() || core::is_part(what.options.part))
    core::bad_usage("--ranks: cannot be combined with --append or --part");
  if (what.options.skip_known < 1) core::bad_usage("--skip-known: cannot be combined with --ranks");
  if (store::parse_reduction(what.options.keys, what.options.prune).any())
    core::bad_usage("--keys, --prune: cannot be combined with --ranks");
  ranks::expect_files(what.files);
}

// A folder beside the store's that holds only the parts of `ranks` ranks.
class PartsFolder {
 public:
  PartsFolder(std::string store, std::int64_t ranks) : ranks_(ranks) {
    while (store.size() > 1 && store.back() == '/') store.pop_back();
    path_ = store + ".parts";
  }
  std::string of(std::int64_t rank) const { return fmt::format("{}/{}", path_, rank + 1); }

  /// Throws Error{cannot_create} if the path is a link, a file or a folder of other things.
  void expect_own() const {
    const auto status = std::filesystem::symlink_status(path_);
    if (!std::filesystem::exists(status)) return;
    if (!std::filesystem::is_directory(status))
      fail(
          Code::cannot_create, "{}: not a folder; the parts of the store are written there", path_);
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const auto name = entry.path().filename().string();
      bool part = false;
      for (std::int64_t rank = 0; rank < ranks_; ++rank) part |= name == std::to_string(rank + 1);
      if (!part)
        fail(Code::cannot_create,
            "{}: not a part of {}; move it away, or remove {} with all its files",
            entry.path().string(), ranks_, path_);
    }
  }
  void make() const { core::make_folder(path_); }
  /// Removes the folder if it is empty.
  void remove_if_empty() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  /// Removes the files of stores in each part that is there. A part with other files stays.
  void remove() const {
    for (std::int64_t rank = 0; rank < ranks_; ++rank)
      if (std::filesystem::exists(of(rank))) store::remove_store(of(rank));
    remove_if_empty();
  }

 private:
  std::string path_;
  std::int64_t ranks_;
};

// Removes the folder if nothing was stored.
struct TidyParts {
  const PartsFolder& parts;
  ~TidyParts() { parts.remove_if_empty(); }
};

// Returns whether an earlier call merged the store, and calibrates that store if the call was
// interrupted before. Throws if the folder holds another store or something else.
bool is_there(const SharedBuild& what, const store::ProgressCallback& watch) {
  if (!std::filesystem::exists(what.folder)) return false;
  if (!std::filesystem::is_directory(what.folder))
    fail(Code::cannot_create, "{}: is not a folder", what.folder);
  store::expect_free(what.folder);
  if (!std::filesystem::exists(what.folder + "/" + store::kManifestName)) return false;
  StoreBuild build(what.options, what.files, what.folder);
  if (!build.complete()) return false;
  build.finish(watch);
  return true;
}

}  // namespace

std::optional<store::Manifest> build_together(const SharedBuild& what, ranks::Group& group,
    const std::function<bool()>& stop,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& of_rows,
    const store::ProgressCallback& merging) {
  group.together([&] { check(what); });
  ranks::expect_agreement(group,
      {{"batch-tokens", what.options.windows.batch_tokens}, {"jobs", at::get_num_threads()}});
  const PartsFolder parts(what.folder, group.size());
  const auto there = group.first_does([&] {
    parts.expect_own();
    const bool found = is_there(what, merging);
    if (found) parts.remove();
    return std::int64_t{found};
  });
  if (there != 0) return store::read_manifest(what.folder);

  bool stopped = false;
  group.together(
      [&] {
        StoreBuildOptions own = what.options;
        own.part = fmt::format("{}/{}", group.rank() + 1, group.size());
        own.index = "exact";  // the whole store's index is made from all keys
        parts.make();
        const TidyParts tidy{parts};
        StoreBuild build(own, what.files, parts.of(group.rank()));
        FillCallbacks watch;
        watch.progress = [&](std::uint64_t rows) { of_rows(rows, build.count()); };
        watch.stop = [&] { return stop() || group.interrupted(); };
        stopped = !build.fill(watch);
        if (!stopped) build.finish({});
      },
      stop);
  if (group.any(stopped ? 1 : 0) != 0) return std::nullopt;

  group.first_does([&] {
    std::vector<std::string> all;
    for (std::int64_t rank = 0; rank < group.size(); ++rank) all.push_back(parts.of(rank));
    store::merge(all, what.folder, what.options.index, merging);
    if (what.options.calibrate) StoreBuild(what.options, what.files, what.folder).finish(merging);
    parts.remove();
    return std::int64_t{0};
  });
  return store::read_manifest(what.folder);
}

}  // namespace infer
