#include "store/manifest.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/file_text.h"
#include "core/json_members.h"
#include "core/path_kind.h"
#include "core/plain_text.h"
#include "core/temporary_file.h"

namespace store {
namespace {

using core::Code;
using core::fail;
using core::Json;
using core::Members;
using core::OrderedJson;

constexpr const char* kFormat = "tessera-store";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostGenerations = std::uint64_t{1} << 53, kMostParts = 1 << 20;
constexpr double kLeastTempered = 1e-6, kMostTempered = 1e6;  // bounds of a calibration

// Returns true if a shard of a, with rows, is b or a shard of b.
bool share_shard(const Source& a, const Source& b) {
  return std::ranges::any_of(a.shards, [&](const SourceShard& of_a) {
    return of_a.rows > 0 &&
           (of_a.data == b.data || std::ranges::any_of(b.shards, [&](const SourceShard& of_b) {
             return of_b.rows > 0 && of_b.data == of_a.data;
           }));
  });
}

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text[0] != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void digest_member(const Members& m, shard::Chain& digest) {
  auto hex = digest.value().hex();
  if (m.from() != nullptr) digest = shard::Chain::read(*m.from(), m.origin());
  else m("digest", hex);
}

// Returns true for STEM.ENDING, and for STEM.G.ENDING with a generation G: the names of the arrays
// and the index.
bool is_generation_of(std::string_view name, std::string_view stem, std::string_view ending) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (name == ending) return true;
  if (!name.starts_with('.') || !name.ends_with(ending)) return false;
  return name.size() > ending.size() && is_number(name.substr(1, name.size() - ending.size() - 1));
}

void file_member(
    const Members& files, const char* key, const std::string& ending, std::string& name) {
  files(key, name);
  const bool none = name.empty() && std::string_view(key) == "index";
  if (!none && !is_generation_of(name, key, ending))
    core::bad_value(files.origin(), fmt::format("the file \"{}\"", key), core::printable(name),
        fmt::format("{0}{1}, {0}.N{1}", key, ending));
}

}  // namespace

// Found by Members, which looks in the namespace of the values.
static void members(const Members& m, Recall& recall) {
  m("k", recall.k), m("nprobe", recall.nprobe), m("queries", recall.queries);
  m("recall", recall.recall);
}

static void members(const Members& m, SourcePart& part) {
  m.count("number", part.number, kMostParts, 1);
  m.count("of", part.of, kMostParts, part.number);
  m.count("begin", part.begin, kMostRows);
  m.count("end", part.end, kMostRows, part.begin);
}

static void members(const Members& m, SourceShard& shard) {
  m("data", shard.data);
  m.count("rows", shard.rows, kMostRows), m.count("documents", shard.documents, kMostRows);
}

// The shards add up to the source.
static void members(const Members& m, Source& source) {
  m("data", source.data), m("rows", source.rows), m("documents", source.documents);
  m("windows", source.windows);
  if (m.has("part", source.part.has_value()))
    members(m.in("part"), source.part ? *source.part : source.part.emplace());
  m.list("shards", source.shards);
  if (m.from() == nullptr) return;
  std::uint64_t rows = 0, documents = 0;
  for (const auto& shard : source.shards) rows += shard.rows, documents += shard.documents;
  if (rows != source.rows || documents != source.documents)
    core::bad_data("{}: the shards of {} have {} rows in {} documents, but it has {} in {}",
        m.origin(), source.data, rows, documents, source.rows, source.documents);
}

static void members(const Members& m, Calibration& calibration) {
  const auto number = [&](const char* name, double& value, double least, double most) {
    m(name, value);
    if (m.from() != nullptr && !(value >= least && value <= most))
      core::bad_value(m.origin(), fmt::format("\"{}\" of its calibration", name), value,
          fmt::format("{} to {}", least, most));
  };
  m("tokens", calibration.tokens);
  number("temperature", calibration.temperature, kLeastTempered, kMostTempered);
  number("share", calibration.share, 0, 0.99);
  number("joint_temperature", calibration.joint_temperature, kLeastTempered, kMostTempered);
  number("joint_bias", calibration.joint_bias, -kMostTempered, kMostTempered);
}

static void members(const Members& m, Receipt& receipt) {
  m("document", receipt.document), m("rows", receipt.rows);
  m("values", receipt.values), m("generation", receipt.generation);
}

static void members(const Members& m, Progress& progress) {
  m("plan", progress.plan), m("rows", progress.rows), m("place", progress.place);
  m("trained_hash", progress.trained_hash);
  digest_member(m, progress.digest);
}

static void members(const Members& m, Manifest& of) {
  m.count("generation", of.generation, kMostGenerations, 1);
  m.count("rows", of.rows, kMostRows);
  m.count("width", of.width, kMostWidth, 1);
  m.count("documents", of.documents, kMostRows, 1);
  m.count("vocabulary", of.vocabulary, std::uint64_t{1} << 31);
  std::string metric(name_of(of.metric));
  m("metric", metric);
  of.metric = metric_from(metric, m.origin());
  m("index", of.index), m("model", of.model), m("tokenizer", of.tokenizer);
  const Members files = m.in("files");
  if (files.has("keys", of.keyed())) file_member(files, "keys", ".npy", of.keys_file);
  else of.keys_file.clear();
  file_member(files, "values", ".npy", of.values_file);
  file_member(files, "documents", ".npy", of.documents_file);
  file_member(files, "index", ".faiss", of.index_file);
  if (!of.keyed()) m("values_hash", of.values_hash);
  const auto hashed = [&](const char* key, const char* ending, std::string& name,
                          std::string& hash) {
    if (!files.has(key, !name.empty())) return false;
    file_member(files, key, ending, name);
    m((std::string(key) + "_hash").c_str(), hash);
    return true;
  };
  hashed("places", ".npy", of.places_file, of.places_hash);
  if (hashed("weights", ".npy", of.weights_file, of.weights_hash))
    m("merge_neighbours", of.merge_neighbours);
  if (hashed("projection", ".npy", of.projection_file, of.projection_hash))
    m.count("model_width", of.model_width, kMostWidth, 1);
  hashed("names", ".txt", of.names_file, of.names_hash);
  if (m.has("key_scale", of.scaled())) m("key_scale", of.key_scale);
  digest_member(m, of.digest);
  m("documents_hash", of.documents_hash), m("index_hash", of.index_hash);
  members(m.in("recall"), of.recall);
  if (m.has("calibration", of.calibration.has_value()))
    members(m.in("calibration"), of.calibration ? *of.calibration : of.calibration.emplace());
  m.list("sources", of.sources), m.list("removed", of.removed);
}

Metric metric_from(std::string_view name, const std::string& origin) {
  if (name == "ip") return Metric::ip;
  if (name == "l2") return Metric::l2;
  core::bad_value(origin, "\"metric\"", core::printable(name), "ip and l2");
}

bool is_key_scale(double scale) {
  int exponent = 0;
  return std::frexp(scale, &exponent) == 0.5 && exponent <= 1 && exponent >= -99;
}

std::span<const float> scaled(std::span<const float> keys, double scale, std::vector<float>& room) {
  if (scale == 1) return keys;
  room.assign(keys.begin(), keys.end());
  for (float& number : room) number *= static_cast<float>(scale);
  return room;
}

std::string Manifest::fingerprint() const {
  Json all{{"rows", rows}, {"digest", digest.value().hex()}, {"documents", documents_hash},
      {"model", model}, {"metric", name_of(metric)}, {"index", index}, {"index_hash", index_hash}};
  if (projected()) all["projection"] = projection_hash;
  if (weighted()) all["weights"] = weights_hash;
  if (scaled()) all["key_scale"] = key_scale;
  return core::hash128(core::dump(all)).hex();
}

bool overlap(const Source& a, const Source& b) {
  if (a.data.empty() || a.data != b.data) return share_shard(a, b) || share_shard(b, a);
  // Rows of other windows are different rows, so their ranges do not compare.
  if (!a.part || !b.part || a.windows != b.windows) return true;
  return a.part->begin < b.part->end && b.part->begin < a.part->end;
}

OrderedJson to_json(const SourcePart& part) { return core::written_members(part); }
OrderedJson to_json(const Calibration& calibration) { return core::written_members(calibration); }
OrderedJson to_json(const Receipt& receipt) { return core::written_members(receipt); }

OrderedJson to_json(const Manifest& manifest) {
  return core::sealed(
      core::written_members(manifest, {{"format", kFormat}, {"version", kVersion}}));
}

Manifest manifest_from(const Json& json, const std::string& origin) {
  core::expect_format(json, kFormat, kVersion, "a store's", origin);
  Manifest m;
  members(Members(json, origin), m);
  if (!is_key_scale(m.key_scale))
    core::bad_value(origin, "\"key_scale\"", m.key_scale, "1, 1/2, 1/4, ...");
  if (m.exact() != m.index_file.empty())
    core::bad_data("{}: \"index\" is {}, but \"files\" names {}", origin, core::printable(m.index),
        m.exact() ? "one" : "none");
  if (m.exact() && !m.keyed()) core::bad_data("{}: an exact index in a store without keys", origin);
  return m;
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!std::filesystem::exists(path)) {
    if (std::filesystem::exists(folder + "/" + kProgressName))
      fail(Code::no_input, "{}: not complete yet; rerun its build-datastore", folder);
    fail(Code::no_input, "{}: not a datastore: it {}; give a folder of build-datastore", folder,
        core::what_path_is(folder));
  }
  return manifest_from(core::read_json(path), path);
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  core::write_file(folder + "/" + kManifestName, core::dump_pretty(to_json(manifest)) + "\n");
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
  Progress progress;
  const Json json = core::read_json(path);
  members(Members(json, path), progress);
  progress.generation(), progress.removes();  // these throw if the values are invalid
  return progress;
}

void write_progress(const std::string& folder, const Progress& progress) {
  const Json json = core::written_members(progress);
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
