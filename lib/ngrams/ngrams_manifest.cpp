#include "ngrams/ngrams_manifest.h"

#include <filesystem>

#include "core/file_text.h"
#include "core/path_kind.h"

namespace ngrams {
namespace {

using core::Code;
using core::fail;
using core::Json;
using core::OrderedJson;

constexpr const char* kFormat = "tessera-ngrams";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 48;

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

PartFacts part_from(const Json& json, const Manifest& m, const std::string& origin) {
  PartFacts part;
  part.begin = core::get_at_most(json, "begin", m.tokens, origin);
  part.end = core::get_at_most(json, "end", m.tokens, origin);
  part.until = core::get_at_most(json, "until", m.tokens, origin);
  part.document = core::get_at_most(json, "document", m.documents - 1, origin);
  part.marks = core::get_at_most(json, "marks", m.documents - part.document, origin);
  part.text_hash = core::get<std::string>(json, "text_hash", origin);
  part.suffixes_hash = core::get<std::string>(json, "suffixes_hash", origin);
  part.firsts_hash = core::get<std::string>(json, "firsts_hash", origin);
  if (part.begin > part.end || part.end > part.until || part.marks == 0)
    core::bad_data("{}: a part from {} to {}, {}", origin, part.begin, part.end, part.until);
  if (part.elements() > UINT32_MAX) core::bad_data("{}: a part is too large", origin);
  return part;
}

std::vector<TextShard> shards_from(const Json& json, const Manifest& m, const std::string& origin) {
  std::vector<TextShard> shards;
  std::uint64_t end = 0;
  auto part = m.parts.begin();
  for (const Json& entry : core::get<std::vector<Json>>(json, "shards", origin)) {
    shards.push_back({core::get<std::string>(entry, "data", origin),
        core::get_at_most(entry, "tokens", m.tokens - end, origin)});
    end += shards.back().tokens;
    while (part != m.parts.end() && part->begin < end)
      if (part++->end > end) core::bad_data("{}: a part has tokens from two shards", origin);
  }
  if (end != m.tokens) core::bad_data("{}: the shards are not the whole text", origin);
  return shards;
}

}  // namespace

std::string text_name(std::size_t part) { return fmt::format("text.{}.npy", part); }
std::string suffixes_name(std::size_t part) { return fmt::format("suffixes.{}.npy", part); }
std::string firsts_name(std::size_t part) { return fmt::format("firsts.{}.npy", part); }

bool is_index_file(std::string_view name) {
  for (const char* own : {kManifestName, kBuildingName, kTokenizerName, kDocumentsName, kNamesName})
    if (name == own) return true;
  for (const std::string_view stem : {"text.", "suffixes.", "firsts."})
    if (name.starts_with(stem) && name.ends_with(".npy") && name.size() > stem.size() + 4)
      return is_digits(name.substr(stem.size(), name.size() - stem.size() - 4));
  return false;
}

OrderedJson to_json(const Manifest& m) {
  OrderedJson json;
  json["format"] = kFormat, json["version"] = kVersion, json["vocabulary"] = m.vocabulary;
  json["tokens"] = m.tokens, json["documents"] = m.documents;
  json["data"] = m.data, json["tokenizer"] = m.tokenizer;
  json["documents_hash"] = m.documents_hash;
  if (!m.names_hash.empty()) json["names_hash"] = m.names_hash;
  json["parts"] = OrderedJson::array();
  for (const auto& part : m.parts)
    json["parts"].push_back({{"begin", part.begin}, {"end", part.end}, {"until", part.until},
        {"document", part.document}, {"marks", part.marks}, {"text_hash", part.text_hash},
        {"suffixes_hash", part.suffixes_hash}, {"firsts_hash", part.firsts_hash}});
  json["shards"] = OrderedJson::array();
  for (const auto& shard : m.shards)
    json["shards"].push_back({{"data", shard.data}, {"tokens", shard.tokens}});
  return core::sealed(std::move(json));
}

Manifest manifest_from(const Json& json, const std::string& origin, bool complete) {
  core::expect_format(json, kFormat, kVersion, "of an index of n-grams", origin);
  Manifest m;
  m.vocabulary = core::get_at_most(json, "vocabulary", std::uint64_t{1} << 31, origin);
  m.tokens = core::get_at_most(json, "tokens", kMostTokens, origin);
  m.documents = core::get_at_most(json, "documents", std::uint64_t{1} << 32, origin);
  if (m.vocabulary == 0 || m.tokens == 0 || m.documents == 0)
    core::bad_data(
        "{}: {} tokens of {} types in {} documents", origin, m.tokens, m.vocabulary, m.documents);
  m.data = core::get<std::string>(json, "data", origin);
  m.tokenizer = core::get<std::string>(json, "tokenizer", origin);
  m.documents_hash = core::get<std::string>(json, "documents_hash", origin);
  if (json.contains("names_hash"))
    m.names_hash = core::get<std::string>(json, "names_hash", origin);
  std::uint64_t end = 0;
  for (const Json& entry : core::get<std::vector<Json>>(json, "parts", origin)) {
    m.parts.push_back(part_from(entry, m, origin));
    const auto& part = m.parts.back();
    if (part.begin != end || (complete && !part.done()))
      core::bad_data("{}: the parts are not the whole text", origin);
    end = part.end;
  }
  if (end != m.tokens) core::bad_data("{}: the parts are not the whole text", origin);
  m.shards = shards_from(json, m, origin);
  return m;
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!std::filesystem::exists(path)) {
    if (std::filesystem::exists(folder + "/" + kBuildingName))
      fail(Code::no_input, "{}: not complete yet; rerun its build-ngrams", folder);
    fail(Code::no_input, "{}: not an index of n-grams: it {}; give a folder of build-ngrams",
        folder, core::what_path_is(folder));
  }
  return manifest_from(core::read_json(path), path);
}

}  // namespace ngrams
