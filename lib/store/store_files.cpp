#include "store/store_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/file_text.h"
#include "core/temporary_file.h"

namespace store {
namespace {

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_generation_of(std::string_view name, std::string_view stem, std::string_view ending) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (name == ending) return true;
  if (!name.starts_with('.') || !name.ends_with(ending)) return false;
  return name.size() > ending.size() && is_number(name.substr(1, name.size() - ending.size() - 1));
}

bool is_store_file(std::string_view name) {
  return name == kManifestName || name == kProgressName || name == kTrainedName ||
         is_generation_of(name, "keys", ".npy") || is_generation_of(name, "values", ".npy") ||
         is_generation_of(name, "documents", ".npy") || is_generation_of(name, "places", ".npy") ||
         is_generation_of(name, "weights", ".npy") ||
         is_generation_of(name, "projection", ".npy") || is_generation_of(name, "names", ".txt") ||
         is_generation_of(name, "index", ".faiss");
}

std::vector<std::string> files_of(const Manifest& manifest) {
  std::vector<std::string> names{manifest.values_file, manifest.documents_file, kManifestName};
  for (const auto& name : {manifest.keys_file, manifest.index_file, manifest.places_file,
           manifest.weights_file, manifest.projection_file, manifest.names_file})
    if (!name.empty()) names.push_back(name);
  return names;
}

void expect_free(const std::string& folder) {
  if (fs::exists(folder + "/" + kManifestName) || fs::exists(folder + "/" + kProgressName)) return;
  core::remove_leftovers(folder, [](std::string_view name) { return name == kProgressName; });
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  if (!names.empty())
    core::fail(core::Code::cannot_create,
        "{}: not a datastore, and contains {}; give an empty or new folder", folder,
        *names.begin());
}

void remove_stale_files(const std::string& folder, const Manifest& manifest) {
  const auto files = files_of(manifest);
  std::set<std::string> named(files.begin(), files.end());
  if (const auto progress = read_progress(folder);
      progress && (progress->generation() > manifest.generation || !progress->removes().empty()))
    named.insert({kProgressName, kTrainedName});
  core::remove_leftovers(folder, is_store_file);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!is_store_file(name) || named.contains(name) ||
        !fs::is_regular_file(entry.symlink_status()))
      continue;
    if (::unlink(entry.path().c_str()) != 0)
      core::fail(
          core::Code::io, "{}: cannot remove: {}", entry.path().string(), core::error_text(errno));
  }
  core::sync_folder(folder);
}

void remove_store(const std::string& folder) {
  std::vector<std::filesystem::path> own;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (is_store_file(entry.path().filename().string())) own.push_back(entry.path());
  for (const auto& path : own) std::filesystem::remove(path);
  std::error_code not_empty;
  std::filesystem::remove(folder, not_empty);
}

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
    core::bad_usage(
        "{}: an interrupted removal must be finished first; rerun: store remove --document {} {}",
        folder, fmt::join(documents, ","), folder);
}

}  // namespace store
