#pragma once
// The folder of a run: one process at a time, one configuration, its data from stdin kept beside
// it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/folder_lock.h"
#include "core/json.h"
#include "ranks/group.h"

namespace train {

/// Of the keys whose values are fingerprints: what gave them ("--valid") and the file's name.
using FileNames = std::map<std::string, std::pair<std::string, std::string>>;

/// Holds the folder while it lives; the lock goes with the process, however it ends.
class RunFolder {
 public:
  /// The first of a run's processes keeps its folder, the others read in it what it wrote.
  enum class Role { keeps, reads };
  /// Who keeps it makes the folder if need be. Throws Error{cannot_create}, also if another run's
  /// process keeps it.
  explicit RunFolder(const std::string& path, Role role = Role::keeps);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  /// The model, or the adapter, is there.
  bool finished() const;

  /// "-" (or no path at all) becomes the copy of stdin in the folder, which is made if it is not
  /// there. If it is, stdin must be empty or hold the same bytes: Error{bad_data} otherwise.
  std::vector<std::string> spool_stdin(std::vector<std::string> paths) const;
  void remove_spool() const;

  /// Where validation's command finds a model: no other process takes it, and the next run's
  /// remove_leftovers() takes it away.
  std::string model_for_command() const;
  /// Removes what interrupted runs left under temporary names of this program's. For when the
  /// folder is known to be this run's.
  void remove_leftovers() const;

  /// Throws Error{usage} naming the first difference, by file where `files` has its name, if the
  /// run that was begun here had another configuration; keeps `config` (config.json, whose
  /// "tessera"."training" is compared) and `tokenizer` (tokenizer.json, unless it is empty) if none
  /// was begun (no checkpoint is there).
  void expect_configuration(const core::OrderedJson& config, const std::string& tokenizer,
                            const FileNames& files = {}) const;

  /// Removes checkpoints: all but the latest (unless `done`) and the `keep` latest whose number
  /// `every` divides.
  void prune(std::int64_t keep, std::int64_t every, bool done) const;

 private:
  std::string path_;
  std::optional<core::FolderLock> lock_;
};

/// A run's folder, and its data as files that every process can read.
struct OpenedRun {
  std::unique_ptr<RunFolder> folder;
  std::vector<std::string> shards;
};
/// Of several processes the first keeps the folder, before the others read in it. Throws
/// Error{usage} where they would have to share a stdin, and as RunFolder does.
OpenedRun open_run(const std::string& path, const std::vector<std::string>& files,
                   ranks::Group& group);

}  // namespace train
