#include "store/progress.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/io.h"

namespace store {

using core::Code;
using core::fail;
using core::Json;

std::optional<Progress> read_progress(const std::string& folder) {
  const std::string path = folder + "/" + kProgressName;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = core::parse_json(core::read_text(path), path);
  Progress progress;
  progress.plan = core::get<Json>(json, "plan", path);
  progress.rows = core::get<std::uint64_t>(json, "rows", path);
  progress.digest =
      shard::Chain::from(core::Digest::from_hex(core::get<std::string>(json, "digest", path)));
  progress.place = core::get<Json>(json, "place", path);
  progress.trained_hash = core::get<std::string>(json, "trained_hash", path);
  return progress;
}

void write_progress(const std::string& folder, const Progress& progress) {
  Json json;
  json["plan"] = progress.plan, json["rows"] = progress.rows;
  json["digest"] = progress.digest.value().hex(), json["place"] = progress.place;
  json["trained_hash"] = progress.trained_hash;
  core::write_file(folder + "/" + kProgressName, core::dump(json) + "\n");
}

FolderLock::FolderLock(const std::string& folder)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) fail(Code::no_input, "{}: {}", folder, core::error_text(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd_);
    fail(Code::cannot_create, "{}: another program is changing it", folder);
  }
}

FolderLock::~FolderLock() { ::close(fd_); }

}  // namespace store
