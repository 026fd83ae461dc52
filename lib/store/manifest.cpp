#include "store/manifest.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/file_text.h"
#include "core/path_kind.h"
#include "core/plain_text.h"
#include "core/temporary_file.h"

namespace store {
namespace {

using core::Code;
using core::fail;
using core::Json;
using core::OrderedJson;

constexpr const char* kFormat = "tessera-store";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostGenerations = std::uint64_t{1} << 53, kMostParts = 1 << 20;
constexpr double kLeastTempered = 1e-6, kMostTempered = 1e6;  // bounds of a calibration

OrderedJson to_json(const Recall& recall) {
  OrderedJson json;
  json["k"] = recall.k, json["nprobe"] = recall.nprobe, json["queries"] = recall.queries;
  json["recall"] = recall.recall;
  return json;
}

SourcePart part_from(const Json& json, const std::string& origin) {
  SourcePart part;
  part.of = core::get_at_most(json, "of", kMostParts, origin, 1);
  part.number = core::get_at_most(json, "number", part.of, origin, 1);
  part.end = core::get_at_most(json, "end", kMostRows, origin);
  part.begin = core::get_at_most(json, "begin", part.end, origin);
  return part;
}

OrderedJson to_json(const Source& source) {
  OrderedJson json;
  json["data"] = source.data, json["rows"] = source.rows, json["documents"] = source.documents;
  json["windows"] = source.windows;
  if (source.part) json["part"] = to_json(*source.part);
  json["shards"] = OrderedJson::array();
  for (const SourceShard& shard : source.shards)
    json["shards"].push_back(
        {{"data", shard.data}, {"rows", shard.rows}, {"documents", shard.documents}});
  return json;
}

// The shards add up to the source.
std::vector<SourceShard> shards_from(
    const Json& json, const Source& source, const std::string& origin) {
  std::vector<SourceShard> shards;
  std::uint64_t rows = 0, documents = 0;
  for (const Json& entry : core::get<std::vector<Json>>(json, "shards", origin)) {
    SourceShard shard;
    shard.data = core::get<std::string>(entry, "data", origin);
    shard.rows = core::get_at_most(entry, "rows", kMostRows, origin);
    shard.documents = core::get_at_most(entry, "documents", kMostRows, origin);
    rows += shard.rows, documents += shard.documents;
    shards.push_back(std::move(shard));
  }
  if (rows != source.rows || documents != source.documents)
    core::bad_data("{}: the shards of {} have {} rows in {} documents, but it has {} in {}", origin,
        source.data, rows, documents, source.rows, source.documents);
  return shards;
}

std::string file_name(
    const Json& files, const char* key, const std::string& ending, const std::string& origin) {
  auto name = core::get<std::string>(files, key, origin);
  const bool none = name.empty() && std::string_view(key) == "index";
  if (!none && !is_generation_of(name, key, ending))
    core::bad_value(origin, fmt::format("the file \"{}\"", key), core::printable(name),
        fmt::format("{0}{1}, {0}.N{1}", key, ending));
  return name;
}

Calibration calibration_from(const Json& json, const std::string& origin) {
  Calibration calibration;
  const auto number = [&](const char* name, double least, double most) {
    const auto value = core::get<double>(json, name, origin);
    if (!(value >= least && value <= most))
      core::bad_value(origin, fmt::format("\"{}\" of its calibration", name), value,
          fmt::format("{} to {}", least, most));
    return value;
  };
  calibration.tokens = core::get<std::uint64_t>(json, "tokens", origin);
  calibration.temperature = number("temperature", kLeastTempered, kMostTempered);
  calibration.share = number("share", 0, 0.99);
  calibration.joint_temperature = number("joint_temperature", kLeastTempered, kMostTempered);
  calibration.joint_bias = number("joint_bias", -kMostTempered, kMostTempered);
  return calibration;
}

// Returns true if a shard of a, with rows, is b or a shard of b.
bool share_shard(const Source& a, const Source& b) {
  return std::any_of(a.shards.begin(), a.shards.end(), [&](const SourceShard& of_a) {
    return of_a.rows > 0 &&
           (of_a.data == b.data ||
               std::any_of(b.shards.begin(), b.shards.end(), [&](const SourceShard& of_b) {
                 return of_b.rows > 0 && of_b.data == of_a.data;
               }));
  });
}

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view name_of(Metric metric) { return metric == Metric::ip ? "ip" : "l2"; }

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
  Json all;
  all["rows"] = rows, all["digest"] = digest.value().hex(), all["documents"] = documents_hash;
  all["model"] = model, all["metric"] = name_of(metric), all["index"] = index;
  all["index_hash"] = index_hash;
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

OrderedJson to_json(const SourcePart& part) {
  OrderedJson json;
  json["number"] = part.number, json["of"] = part.of;
  json["begin"] = part.begin, json["end"] = part.end;
  return json;
}

OrderedJson to_json(const Calibration& calibration) {
  OrderedJson json;
  json["tokens"] = calibration.tokens;
  json["temperature"] = calibration.temperature, json["share"] = calibration.share;
  json["joint_temperature"] = calibration.joint_temperature;
  json["joint_bias"] = calibration.joint_bias;
  return json;
}

OrderedJson to_json(const Receipt& receipt) {
  OrderedJson json;
  json["document"] = receipt.document, json["rows"] = receipt.rows;
  json["values"] = receipt.values, json["generation"] = receipt.generation;
  return json;
}

OrderedJson to_json(const Manifest& m) {
  OrderedJson json;
  json["format"] = kFormat, json["version"] = kVersion;
  json["generation"] = m.generation;
  json["rows"] = m.rows, json["width"] = m.width, json["documents"] = m.documents;
  json["vocabulary"] = m.vocabulary, json["metric"] = name_of(m.metric);
  json["index"] = m.index, json["model"] = m.model, json["tokenizer"] = m.tokenizer;
  if (m.keyed()) json["files"]["keys"] = m.keys_file;
  json["files"]["values"] = m.values_file;
  json["files"]["documents"] = m.documents_file, json["files"]["index"] = m.index_file;
  if (!m.keyed()) json["values_hash"] = m.values_hash;
  if (!m.whole()) json["files"]["places"] = m.places_file, json["places_hash"] = m.places_hash;
  if (m.weighted()) {
    json["files"]["weights"] = m.weights_file, json["weights_hash"] = m.weights_hash;
    json["merge_neighbours"] = m.merge_neighbours;
  }
  if (m.projected()) {
    json["files"]["projection"] = m.projection_file, json["projection_hash"] = m.projection_hash;
    json["model_width"] = m.model_width;
  }
  if (m.named()) json["files"]["names"] = m.names_file, json["names_hash"] = m.names_hash;
  if (m.scaled()) json["key_scale"] = m.key_scale;
  json["digest"] = m.digest.value().hex(), json["documents_hash"] = m.documents_hash;
  json["index_hash"] = m.index_hash;
  json["recall"] = to_json(m.recall);
  if (m.calibration) json["calibration"] = to_json(*m.calibration);
  json["sources"] = OrderedJson::array(), json["removed"] = OrderedJson::array();
  for (const Source& source : m.sources) json["sources"].push_back(to_json(source));
  for (const Receipt& receipt : m.removed) json["removed"].push_back(to_json(receipt));
  return core::sealed(std::move(json));
}

Manifest manifest_from(const Json& json, const std::string& origin) {
  core::expect_format(json, kFormat, kVersion, "a store's", origin);
  Manifest m;
  m.generation = core::get_at_most(json, "generation", kMostGenerations, origin, 1);
  m.rows = core::get_at_most(json, "rows", kMostRows, origin);
  m.width = core::get_at_most(json, "width", kMostWidth, origin, 1);
  m.documents = core::get_at_most(json, "documents", kMostRows, origin, 1);
  m.vocabulary = core::get_at_most(json, "vocabulary", std::uint64_t{1} << 31, origin);
  m.metric = metric_from(core::get<std::string>(json, "metric", origin), origin);
  m.index = core::get<std::string>(json, "index", origin);
  m.model = core::get<std::string>(json, "model", origin);
  m.tokenizer = core::get<std::string>(json, "tokenizer", origin);
  const auto files = core::get<Json>(json, "files", origin);
  m.keys_file.clear();
  if (files.contains("keys")) m.keys_file = file_name(files, "keys", ".npy", origin);
  else m.values_hash = core::get<std::string>(json, "values_hash", origin);
  m.values_file = file_name(files, "values", ".npy", origin);
  m.documents_file = file_name(files, "documents", ".npy", origin);
  m.index_file = file_name(files, "index", ".faiss", origin);
  if (files.contains("places")) {
    m.places_file = file_name(files, "places", ".npy", origin);
    m.places_hash = core::get<std::string>(json, "places_hash", origin);
  }
  if (files.contains("weights")) {
    m.weights_file = file_name(files, "weights", ".npy", origin);
    m.weights_hash = core::get<std::string>(json, "weights_hash", origin);
    m.merge_neighbours = core::get<std::uint64_t>(json, "merge_neighbours", origin);
  }
  if (files.contains("projection")) {
    m.projection_file = file_name(files, "projection", ".npy", origin);
    m.projection_hash = core::get<std::string>(json, "projection_hash", origin);
    m.model_width = core::get_at_most(json, "model_width", kMostWidth, origin, 1);
  }
  if (files.contains("names")) {
    m.names_file = file_name(files, "names", ".txt", origin);
    m.names_hash = core::get<std::string>(json, "names_hash", origin);
  }
  if (json.contains("key_scale")) m.key_scale = core::get<double>(json, "key_scale", origin);
  if (!is_key_scale(m.key_scale))
    core::bad_value(origin, "\"key_scale\"", m.key_scale, "1, 1/2, 1/4, ...");
  if (m.exact() != m.index_file.empty())
    core::bad_data("{}: \"index\" is {}, but \"files\" names {}", origin, core::printable(m.index),
        m.exact() ? "one" : "none");
  if (m.exact() && !m.keyed()) core::bad_data("{}: an exact index in a store without keys", origin);
  m.digest = shard::Chain::read(json, origin);
  m.documents_hash = core::get<std::string>(json, "documents_hash", origin);
  m.index_hash = core::get<std::string>(json, "index_hash", origin);
  const auto recall = core::get<Json>(json, "recall", origin);
  m.recall.k = core::get<std::int64_t>(recall, "k", origin);
  m.recall.nprobe = core::get<std::int64_t>(recall, "nprobe", origin);
  m.recall.queries = core::get<std::int64_t>(recall, "queries", origin);
  m.recall.recall = core::get<double>(recall, "recall", origin);
  if (json.contains("calibration"))
    m.calibration = calibration_from(core::get<Json>(json, "calibration", origin), origin);
  for (const Json& entry : core::get<std::vector<Json>>(json, "sources", origin)) {
    Source source;
    source.data = core::get<std::string>(entry, "data", origin);
    source.rows = core::get<std::uint64_t>(entry, "rows", origin);
    source.documents = core::get<std::uint64_t>(entry, "documents", origin);
    source.windows = core::get<Json>(entry, "windows", origin);
    if (entry.contains("part")) source.part = part_from(entry["part"], origin);
    source.shards = shards_from(entry, source, origin);
    m.sources.push_back(std::move(source));
  }
  for (const Json& entry : core::get<std::vector<Json>>(json, "removed", origin)) {
    Receipt receipt;
    receipt.document = core::get<std::uint64_t>(entry, "document", origin);
    receipt.rows = core::get<std::uint64_t>(entry, "rows", origin);
    receipt.values = core::get<std::string>(entry, "values", origin);
    receipt.generation = core::get<std::uint64_t>(entry, "generation", origin);
    m.removed.push_back(std::move(receipt));
  }
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
