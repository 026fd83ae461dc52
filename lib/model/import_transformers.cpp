#include "model/import_transformers.h"

#include <set>

#include "core/error.h"
#include "core/io.h"
#include "model/imports/import_map.h"
#include "model/safetensors.h"
#include "model/tensor_files.h"
#include "model/weights.h"

namespace model {
namespace {

using core::Code;
using core::fail;

constexpr std::size_t kPickledIndexBytes = std::size_t{1} << 28;
constexpr const char* kPickled = "/pytorch_model.bin";
constexpr const char* kPickledIndex = "/pytorch_model.bin.index.json";

std::set<std::string> pickled_files(const std::string& folder) {
  if (core::exists(folder + kPickled)) return {folder + kPickled};
  const std::string index = folder + kPickledIndex;
  std::set<std::string> files;
  const auto json = core::parse_json(core::read_text(index, kPickledIndexBytes), index);
  for (const auto& [tensor, file] : parse_tensor_index(json, index))
    files.insert(folder + "/" + file);
  return files;
}

// Masks and the like stay behind: some are not of floating point.
NamedTensors pickled_tensors(const std::string& folder, const Family* family) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& path : pickled_files(folder)) {
    const TorchFile file(path);
    StateDict weights(file, file.root(), {});
    for (const auto& name : weights.left()) {
      if (is_buffer(family, name)) continue;
      if (!tensors.emplace(name, weights.take(name)).second)
        fail(Code::bad_data, "{}: tensor {} stands in another file too", path, name);
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
  const auto read = read_model(stored.config, stored.path, files);
  loaded.model = read.model;
  loaded.fingerprint = read.fingerprint;
  loaded.config = std::move(stored.json);
  loaded.facts = std::move(stored.config.facts);
  loaded.model->eval();
  return loaded;
}

}  // namespace model
