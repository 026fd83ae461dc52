// A whole index of n-grams, its files one behind the other: opened and asked, or refused with an
// Error of what a user would be told.
//
// An input is, for each file, a line "NAME BYTES" and that many bytes; tests/fuzz/pack_store makes
// one of a folder.

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "fuzz/repair.h"
#include "ngrams/next_tokens.h"
#include "ngrams/ngram_overlap.h"
#include "ngrams/suffix_follower.h"

namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

// What lies beyond the names of an index is left out.
Files unpack(std::string_view text) {
  Files files;
  while (!text.empty()) {
    const auto space = text.find(' '), line = text.find('\n');
    if (space == text.npos || line == text.npos || space > line) break;
    std::size_t size = 0;
    std::from_chars(text.data() + space + 1, text.data() + line, size);
    const std::string name(text.substr(0, space));
    text.remove_prefix(line + 1);
    const auto bytes = text.substr(0, size);
    if (ngrams::is_index_file(name)) files[name] = bytes;
    text.remove_prefix(bytes.size());
  }
  return files;
}

std::string pack(const Files& files) {
  std::string text;
  for (const auto& [name, bytes] : files)
    text += name + ' ' + std::to_string(bytes.size()) + '\n' + bytes;
  return text;
}

// One folder for the whole run.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = fs::temp_directory_path() / "ngrams-fuzz.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
};

// All that can be asked; answers may be wrong where suffixes are damaged, but are answers.
void ask(const std::shared_ptr<const ngrams::Index>& index) {
  const auto folder = index->folders()[0];
  const auto types = static_cast<std::uint32_t>(folder->manifest().vocabulary);
  ngrams::SuffixFollower follower(index);
  ngrams::NextTokens next(index, 100);
  std::vector<std::uint32_t> text;
  for (std::uint32_t i = 0; i < 40; ++i) text.push_back(i % 7 == 6 ? types + i : 97 + i * i % 9);
  for (const std::uint32_t token : text) {
    follower.push(token);
    const auto match = follower.match();
    const auto followers = index->followers(match);
    index->count(match, token);
    if (types < 1 << 20) next.of(match);
    const auto n = std::min<std::uint64_t>(ngrams::Index::count(match), 3);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (index->place(match, i).document >= folder->manifest().documents) std::abort();
      if (index->around(match, i, -5, 5).size() > 10) std::abort();
    }
    if (followers.count > ngrams::Index::count(match)) std::abort();
  }
  ngrams::spans_of(index, text, 2);
  folder->verify();
}

}  // namespace

// The hash that ngrams.json carries of itself, those of the arrays, and that of the tokenizer.
void repair(std::vector<std::byte>& bytes) {
  Files files = unpack({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto json = core::parse_json(files["ngrams.json"], "");
  if (!json.is_object()) return;
  constexpr std::size_t kHeader = 128;
  const auto hash_of = [&](const std::string& name) {
    return core::hash128(
               std::string_view(files[name]).substr(std::min(files[name].size(), kHeader)))
        .hex();
  };
  json["documents_hash"] = hash_of("documents.npy");
  if (files.count("tokenizer.json"))
    json["tokenizer"] = core::hash128(files["tokenizer.json"]).hex();
  std::size_t part = 0;
  if (json.contains("parts") && json["parts"].is_array())
    for (auto& facts : json["parts"]) {
      if (!facts.is_object()) return;
      facts["text_hash"] = hash_of(ngrams::text_name(part));
      facts["suffixes_hash"] = hash_of(ngrams::suffixes_name(part));
      facts["firsts_hash"] = hash_of(ngrams::firsts_name(part++));
    }
  json.erase("hash");
  json["hash"] = core::hash128(core::dump(json)).hex();
  files["ngrams.json"] = core::dump(json);
  const std::string text = pack(files);
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.assign(data, data + text.size());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  for (const auto& entry : fs::directory_iterator(folder.path)) fs::remove(entry.path());
  for (const auto& [name, bytes] : unpack({reinterpret_cast<const char*>(data), size}))
    std::ofstream(folder.path / name, std::ios::binary) << bytes;
  try {
    ask(std::make_shared<const ngrams::Index>(std::vector<std::string>{folder.path}));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::no_input) std::abort();
  }
  try {  // of an index that is not complete
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ngrams::manifest_from(core::parse_json(text, "fuzz"), "fuzz", /*complete=*/false);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
  return 0;
}
