#include "ngrams/ngrams_manifest.h"

#include <filesystem>

#include "core/file_text.h"
#include "core/json_members.h"
#include "core/path_kind.h"

namespace ngrams {
namespace {

using core::Members;

constexpr const char* kFormat = "tessera-ngrams";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 48;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void expect_parts(const Manifest& m, const std::string& origin, bool complete) {
  std::uint64_t end = 0;
  for (const auto& part : m.parts) {
    if (part.begin > part.end || part.end > part.until || part.until > m.tokens ||
        part.document >= m.documents || part.marks == 0 || part.marks > m.documents - part.document)
      core::bad_data("{}: a part does not fit the {} tokens", origin, m.tokens);
    if (part.elements() > UINT32_MAX) core::bad_data("{}: a part is too large", origin);
    if (part.begin != end || (complete && !part.done()))
      core::bad_data("{}: the parts are not the whole text", origin);
    end = part.end;
  }
  if (end != m.tokens) core::bad_data("{}: the parts are not the whole text", origin);
}

void expect_shards(const Manifest& m, const std::string& origin) {
  std::uint64_t end = 0;
  auto part = m.parts.begin();
  for (const auto& shard : m.shards) {
    if (shard.tokens > m.tokens - end) break;
    end += shard.tokens;
    while (part != m.parts.end() && part->begin < end)
      if (part++->end > end) core::bad_data("{}: a part has tokens from two shards", origin);
  }
  if (end != m.tokens) core::bad_data("{}: the shards are not the whole text", origin);
}

}  // namespace

// Found by Members, which looks in the namespace of the values.
static void members(const Members& m, PartFacts& part) {
  m.count("begin", part.begin, kMostTokens), m.count("end", part.end, kMostTokens);
  m.count("until", part.until, kMostTokens), m("document", part.document), m("marks", part.marks);
  m("text_hash", part.text_hash), m("suffixes_hash", part.suffixes_hash);
  m("firsts_hash", part.firsts_hash);
}

static void members(const Members& m, TextShard& shard) {
  m("data", shard.data), m.count("tokens", shard.tokens, kMostTokens);
}

static void members(const Members& m, Manifest& of) {
  m.count("vocabulary", of.vocabulary, std::uint64_t{1} << 31, 1);
  m.count("tokens", of.tokens, kMostTokens, 1);
  m.count("documents", of.documents, std::uint64_t{1} << 32, 1);
  m("data", of.data), m("tokenizer", of.tokenizer), m("documents_hash", of.documents_hash);
  if (m.has("names_hash", !of.names_hash.empty())) m("names_hash", of.names_hash);
  m.list("parts", of.parts), m.list("shards", of.shards);
}

bool is_index_file(std::string_view name) {
  for (const char* own : {kManifestName, kBuildingName, kTokenizerName, kDocumentsName, kNamesName})
    if (name == own) return true;
  for (const std::string_view stem : {"text.", "suffixes.", "firsts."})
    if (name.starts_with(stem) && name.ends_with(".npy") && name.size() > stem.size() + 4)
      return is_digits(name.substr(stem.size(), name.size() - stem.size() - 4));
  return false;
}

core::OrderedJson to_json(const Manifest& manifest) {
  return core::sealed(
      core::written_members(manifest, {{"format", kFormat}, {"version", kVersion}}));
}

Manifest manifest_from(const core::Json& json, const std::string& origin, bool complete) {
  core::expect_format(json, kFormat, kVersion, "of an index of n-grams", origin);
  Manifest m;
  members(Members(json, origin), m);
  expect_parts(m, origin, complete);
  expect_shards(m, origin);
  return m;
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!std::filesystem::exists(path)) {
    if (std::filesystem::exists(folder + "/" + kBuildingName))
      core::fail(core::Code::no_input, "{}: not complete yet; rerun its build-ngrams", folder);
    core::fail(core::Code::no_input,
        "{}: not an index of n-grams: it {}; give a folder of build-ngrams", folder,
        core::what_path_is(folder));
  }
  return manifest_from(core::read_json(path), path);
}

}  // namespace ngrams
