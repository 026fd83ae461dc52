#include "model/import_transformers.h"

#include <set>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "model/imports/import_map.h"
#include "model/safetensors.h"
#include "model/tensor_files.h"
#include "model/weights.h"

namespace model {
namespace {

using core::Code;
using core::fail;

constexpr std::size_t kPickledIndexBytes = std::size_t{1} << 26;
constexpr const char* kPickled = "/pytorch_model.bin";
constexpr const char* kPickledIndex = "/pytorch_model.bin.index.json";

// Returns the files, each with its tensors according to the index.
std::map<std::string, std::set<std::string>> pickled_files(const std::string& folder) {
  if (core::exists(folder + kPickled)) return {{folder + kPickled, {}}};
  const std::string index = folder + kPickledIndex;
  std::map<std::string, std::set<std::string>> files;
  const auto json = core::read_json(index, kPickledIndexBytes);
  for (const auto& [tensor, file] : parse_tensor_index(json, index))
    files[folder + "/" + file].insert(tensor);
  return files;
}

// Buffers such as masks are skipped; some have integer types.
NamedTensors pickled_tensors(const std::string& folder, const Family* family) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [path, expected] : pickled_files(folder)) {
    const TorchFile file(path);
    StateDict weights(file, file.root(), {});
    for (const auto& name : expected)
      if (!weights.has(name))
        fail(Code::bad_data, "{}: has no tensor {}, although {} names it", path, name,
             folder + kPickledIndex);
    for (const auto& name : weights.left()) {
      if (is_buffer(family, name)) continue;
      if (name.empty() || name == "__metadata__")
        fail(Code::bad_data, "{}: \"{}\" is not a valid name of a tensor", path, name);
      if (!tensors.emplace(name, weights.take(name)).second)
        fail(Code::bad_data, "{}: tensor {} also occurs in another file", path, name);
      if (!expected.empty() && expected.count(name) == 0)
        fail(Code::bad_data, "{}: tensor {} is not in {}", path, name, folder + kPickledIndex);
    }
  }
  return {tensors.begin(), tensors.end()};
}

}  // namespace

bool has_pickled_weights(const std::string& folder) {
  return core::exists(folder + "/config.json") &&
         (core::exists(folder + kPickled) || core::exists(folder + kPickledIndex));
}

Loaded load_pickled(const std::string& folder) {
  StoredConfig stored = parse_config_of(folder);
  Loaded loaded;
  loaded.folder = folder;
  loaded.tokenizer = read_own_tokenizer(folder, stored.config.facts);
  loaded.family = stored.config.family == nullptr ? "" : std::string(stored.config.family->type);
  core::MemorySink sink;
  write_safetensors(sink, pickled_tensors(folder, stored.config.family));
  const TensorFiles files(std::make_unique<SafetensorsReader>(
      std::make_unique<core::RandomMemory>(sink.bytes, folder + kPickled)));
  loaded.stored_type = stored_type(files, stored.config.family);
  const auto read = read_model(stored.config, stored.path, files);
  loaded.model = read.model;
  loaded.fingerprint = read.fingerprint;
  loaded.config = std::move(stored.json);
  loaded.facts = std::move(stored.config.facts);
  loaded.model->eval();
  return loaded;
}

}  // namespace model
