// A whole store, its files one behind the other: opened and searched, or refused with an Error of
// what a user would be told.
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
#include "store/datastore.h"

namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

// What lies beyond the names of a store is left out.
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
    for (const auto* known :
         {"store.json", "keys.npy", "values.npy", "documents.npy", "index.faiss"})
      if (name == known) files[name] = bytes;
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
    std::string name = fs::temp_directory_path() / "store-fuzz.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
};

void search(const store::Datastore& opened) {
  const std::vector<float> queries(static_cast<std::size_t>(2 * opened.width()), 0.5F);
  store::SearchOptions options;
  options.k = 5, options.nprobe = 2, options.threads = 1;
  for (const bool rescore : {false, true}) {
    options.rescore = rescore;
    const auto hits = opened.search(queries, options);
    for (std::size_t i = 0; i < hits.ids.size(); ++i) {
      if (hits.ids[i] < 0) continue;
      if (hits.ids[i] >= opened.size()) std::abort();
      const auto document = opened.document_of(hits.ids[i]);
      if (document < 0 || document >= static_cast<std::int64_t>(opened.documents().size()))
        std::abort();
    }
  }
}

}  // namespace

// The hashes that store.json carries, of the files and of itself.
void repair(std::vector<std::byte>& bytes) {
  Files files = unpack({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto json = core::parse_json(files["store.json"], "");
  if (!json.is_object()) return;
  constexpr std::size_t header = store::kNpyHeaderBytes;
  if (const auto& text = files["documents.npy"]; text.size() >= header)
    json["documents_hash"] = core::hash128(std::string_view(text).substr(header)).hex();
  if (files.count("index.faiss")) json["index_hash"] = core::hash128(files["index.faiss"]).hex();
  json.erase("hash");
  json["hash"] = core::hash128(core::dump(json)).hex();
  files["store.json"] = core::dump(json);
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
    search(store::Datastore(folder.path));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::no_input &&
        error.code() != core::Code::unavailable)
      std::abort();
  }
  return 0;
}
