#include "store/build_progress.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "core/os_error.h"

namespace store {

using core::Code;
using core::fail;
using core::Json;

namespace {
constexpr const char *kGeneration = "generation", *kRemove = "remove";  // keys in the plan
}

std::uint64_t Progress::generation() const {
  return core::get<std::uint64_t>(plan, kGeneration, kProgressName);
}

std::vector<std::int64_t> Progress::removes() const {
  if (!plan.contains(kRemove)) return {};
  return core::get<std::vector<std::int64_t>>(plan, kRemove, kProgressName);
}

Progress Progress::removal(const std::vector<std::int64_t>& documents, std::uint64_t generation) {
  Progress progress;
  progress.plan[kRemove] = documents, progress.plan[kGeneration] = generation;
  return progress;
}

std::optional<Progress> read_progress(const std::string& folder) {
  const std::string path = folder + "/" + kProgressName;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = core::read_json(path);
  Progress progress;
  progress.plan = core::get<Json>(json, "plan", path);
  progress.generation(), progress.removes();  // these throw if the values are invalid
  progress.rows = core::get<std::uint64_t>(json, "rows", path);
  progress.digest = shard::Chain::read(json, path);
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

void remove_progress(const std::string& folder) {
  const std::string path = folder + "/" + kProgressName;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    fail(Code::io, "{}: cannot remove: {}", path, core::error_text(errno));
  core::sync_folder(folder);
}

void expect_no_removal(const std::string& folder, const std::vector<std::int64_t>& but) {
  const auto begun = read_progress(folder);
  if (!begun) return;
  if (const auto documents = begun->removes(); !documents.empty() && documents != but)
    fail(Code::usage,
         "{}: an interrupted removal must be finished first; rerun: store remove --document {} {}",
         folder, fmt::join(documents, ","), folder);
}

}  // namespace store
