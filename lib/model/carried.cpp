#include "model/carried.h"

#include "core/file_text.h"
#include "model/folder.h"
#include "model/gguf/gguf_tokenizer.h"

namespace model {
namespace {

constexpr std::size_t kCarriedBytes = std::size_t{64} << 20;
constexpr std::array kIds = {"bos_token_id", "eos_token_id", "pad_token_id"};
constexpr std::array kTypeKeys = {"dtype", "torch_dtype"};

std::vector<Carried::File> files_of_folder(const std::string& folder) {
  std::vector<Carried::File> files;
  for (const auto name : carried_names()) {
    const auto path = folder + "/" + std::string(name);
    if (core::exists(path))
      files.push_back({std::string(name), core::read_file(path, kCarriedBytes)});
  }
  return files;
}

// Returns the files that a transformers folder has besides the model.
std::vector<Carried::File> files_of_gguf(const GgufFile& file) {
  std::vector<Carried::File> files;
  if (const auto special = gguf_special_tokens(file); !special.empty()) {
    core::OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
    config.update(special);
    files.push_back({"tokenizer_config.json", core::dump_pretty(config) + "\n"});
  }
  if (const auto chat = file.text("tokenizer.chat_template"))
    files.push_back({"chat_template.jinja", std::string(*chat)});
  if (const auto generation = gguf_generation_config(file); !generation.empty())
    files.push_back({"generation_config.json", core::dump_pretty(generation) + "\n"});
  return files;
}

}  // namespace

const std::vector<std::string_view>& carried_names() {
  static const std::vector<std::string_view> names = {"tokenizer_config.json",
      "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
      "generation_config.json", "tokenizer.model", "vocab.json", "merges.txt"};
  return names;
}

bool is_carried(std::string_view name) {
  const auto& names = carried_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Carried carried_of(const Loaded& loaded) {
  Carried carried;
  carried.family = loaded.family;
  carried.files = is_gguf(loaded.folder) ? files_of_gguf(GgufFile(loaded.folder))
                                         : files_of_folder(loaded.folder);
  if (loaded.family.empty()) return carried;
  for (const char* key : kIds) {
    const auto found = loaded.config.find(key);
    // A GGUF file without an id has none; a folder of transformers has its class's.
    if (found == loaded.config.end() && is_gguf(loaded.folder)) carried.ids[key] = nullptr;
    if (found == loaded.config.end()) continue;
    if (found->is_null() && loaded.tokenizer.empty()) carried.unknown.emplace(key);
    else carried.ids[key] = *found;
  }
  for (const char* key : kTypeKeys)
    if (loaded.config.contains(key)) carried.type_key = key;
  return carried;
}

void Carried::set_ids(core::OrderedJson& config, const Family& written) const {
  for (const char* key : kIds) {
    if (ids.contains(key)) config[key] = core::OrderedJson(ids.at(key));
    else if (family == written.type && !unknown.contains(key)) config.erase(key);
  }
}

}  // namespace model
