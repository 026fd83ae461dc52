// A whole store, its files concatenated, is opened and searched, or gives an Error for the user.

#include <cstdlib>

#include "fuzz/packed_folder.h"
#include "fuzz/target.h"
#include "store/datastore.h"

namespace {

PackedFiles store_files(std::string_view text) {
  return unpack(text, [](const std::string& name) {
    return store::is_store_file(name) && name != store::kProgressName;
  });
}

void search(const store::Datastore& opened) {
  const std::vector<float> queries(static_cast<std::size_t>(2 * opened.query_width()), 0.5F);
  store::SearchOptions options;
  options.k = 5, options.nprobe = 2, options.threads = 1;
  for (const bool rescore : {false, true}) {
    if (rescore && !opened.manifest().keyed()) continue;
    options.rescore = rescore;
    const auto hits = opened.search(queries, options);
    for (std::size_t i = 0; i < hits.ids.size(); ++i) {
      if (hits.ids[i] < 0) continue;
      if (hits.ids[i] >= opened.size()) std::abort();
      const auto document = opened.document_of(hits.ids[i]);
      if (document < 0 || document >= static_cast<std::int64_t>(opened.documents().size()))
        std::abort();
      if (std::ssize(opened.context(hits.ids[i], 3).before) > 3) std::abort();
    }
  }
}

}  // namespace

// Repairs the hashes in store.json, of the files and of itself.
FUZZ_REPAIR(store_folder)(std::vector<std::byte>& bytes) {
  PackedFiles files = store_files({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto json = core::parse_json(files["store.json"], "");
  if (!json.is_object()) return;
  constexpr std::size_t header = store::kNpyHeaderBytes;
  for (const auto& [name, text] : files) {
    const std::string stem = name.substr(0, name.find('.'));
    const bool array =
        stem == "documents" || stem == "places" || stem == "weights" || stem == "projection";
    if (array && text.size() >= header)
      json[stem + "_hash"] = core::hash128(std::string_view(text).substr(header)).hex();
    if (stem == "names") json["names_hash"] = core::hash128(text).hex();
    if (stem == "index") json["index_hash"] = core::hash128(text).hex();
  }
  json.erase("hash");
  json["hash"] = core::hash128(core::dump(json)).hex();
  files["store.json"] = core::dump(json);
  pack(files, bytes);
}

FUZZ_TARGET(store_folder)(const std::uint8_t* data, std::size_t size) {
  static const FuzzedFolder folder;
  folder.hold(store_files({reinterpret_cast<const char*>(data), size}));
  try {
    search(store::Datastore(folder.path));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::no_input &&
        error.code() != core::Code::unavailable)
      std::abort();
  }
}
