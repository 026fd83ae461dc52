#include "model/import_model.h"

#include <filesystem>

#include "core/file_text.h"
#include "core/path_kind.h"
#include "model/export_model.h"
#include "model/rwkv_file.h"
#include "nn/base/runtime.h"
#include "nn/layers/layers.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

using core::fail;

std::shared_ptr<nn::Model> blank_model(const ImportedModel& read, const std::string& origin) {
  const nn::NoFirstValues unset;
  try {
    return std::make_shared<nn::Model>(read.options, read.vocabulary);
  } catch (const c10::Error& error) {
    if (nn::is_out_of_memory(error)) throw;
    core::bad_config("{}: its options describe no valid model", origin);
  } catch (const core::Error& error) { fail(error.code(), "{}: {}", origin, error.what()); }
}

// Checks sizes before memory for the model is allocated: a file of a few bytes may ask for much.
void expect_weights(const ImportedModel& read, const std::string& origin) {
  expect_possible(read, origin);
  if (read.options.shape.layers > static_cast<std::int64_t>(read.weights.size()))
    core::bad_data("{}: has only {} tensors for {} layers", origin, read.weights.size(),
        read.options.shape.layers);
  const nn::ShapesOnly shapes_only;
  const auto model = blank_model(read, origin);
  std::size_t known = 0;
  for (const auto& [name, weight] : model->named_weights()) {
    const auto found = read.weights.find(name);
    if (found == read.weights.end()) core::bad_data("{}: has no {}", origin, name);
    if (found->second.sizes() != weight.sizes())
      core::bad_data("{}: {} has shape ({}), but its options require ({})", origin, name,
          fmt::join(found->second.sizes().vec(), ", "), fmt::join(weight.sizes().vec(), ", "));
    if (!torch::isfinite(found->second).all().item<bool>())
      core::bad_data("{}: {} has a value that is not finite", origin, name);
    ++known;
  }
  if (known < read.weights.size())
    core::bad_data(
        "{}: has {} tensors more than its options require", origin, read.weights.size() - known);
}

std::string tokenizer_for(const ImportOptions& options, std::int64_t vocabulary) {
  if (options.tokenizer.empty()) return {};
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  if (tokenizer->size() > static_cast<std::size_t>(vocabulary))
    core::bad_data("{}: a tokenizer of {} tokens, more than the {} of the model", options.tokenizer,
        tokenizer->size(), vocabulary);
  return tokenizer->json();
}

// Returns the file itself, or the checkpoint that a trainer wrote into the folder.
std::string checkpoint_at(const std::string& path) {
  if (core::path_kind(path) == core::PathKind::hub_id) core::refuse_hub_id(path);
  if (!std::filesystem::is_directory(path)) return path;
  for (const char* name : core::kCheckpointNames)
    if (core::exists(path + "/" + name)) return path + "/" + name;
  if (core::exists(path + "/config.json") && core::exists(path + "/model.safetensors"))
    fail(core::Code::no_input, "{}: is already a model that programs read; give it to -m", path);
  fail(core::Code::no_input, "{}: has none of {}, pytorch_model.bin", path,
      fmt::join(core::kCheckpointNames, ", "));
}

ImportReport import_loaded(const Loaded& loaded, const char* program, const ImportOptions& options,
    const std::string& folder) {
  auto tokenizer = tokenizer_for(options, loaded.model->vocabulary);
  if (tokenizer.empty()) tokenizer = loaded.tokenizer;
  core::OrderedJson facts = {{"memory", "none"}, {"imported", {{"program", program}}}};
  if (!loaded.family.empty()) facts["family"] = loaded.family;
  const bool was_there = save_once(folder, *loaded.model, facts, tokenizer, carried_of(loaded));
  return {program, loaded.model->options.arch, loaded.model->parameter_count(), was_there};
}

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

torch::Tensor take_named(StateDict& weights, const std::string& name, bool own_type = false) {
  if (name.empty() || name == "__metadata__")
    core::bad_data("{}: \"{}\" is not a valid name of a tensor", weights.origin(), name);
  return weights.take(name, own_type);
}

// Buffers such as masks are skipped; some have integer types.
NamedTensors pickled_tensors(const std::string& folder, const Family* family) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [path, expected] : pickled_files(folder)) {
    const TorchFile file(path);
    StateDict weights(file, file.root(), {});
    for (const auto& name : expected)
      if (!weights.has(name))
        core::bad_data(
            "{}: has no tensor {}, although {} names it", path, name, folder + kPickledIndex);
    for (const auto& name : weights.left()) {
      if (is_buffer(family, name)) continue;
      if (!tensors.emplace(name, take_named(weights, name)).second)
        core::bad_data("{}: tensor {} also occurs in another file", path, name);
      if (!expected.empty() && expected.count(name) == 0)
        core::bad_data("{}: tensor {} is not in {}", path, name, folder + kPickledIndex);
    }
  }
  return {tensors.begin(), tensors.end()};
}

// Returns whether `folder` has pickled weights.
bool has_pickled_weights(const std::string& folder) {
  return core::exists(folder + "/config.json") &&
         (core::exists(folder + kPickled) || core::exists(folder + kPickledIndex));
}

ImportReport import_rwkv(TensorMap tensors, const std::string& path, const ImportOptions& options,
    const std::string& folder) {
  const auto config = rwkv_config(tensors, path);
  const auto tokenizer = tokenizer_for(options, config.vocabulary);
  core::MemorySink sink;
  write_safetensors(sink, {tensors.begin(), tensors.end()});
  tensors.clear();
  const TensorFiles files(
      std::make_unique<SafetensorsReader>(std::make_unique<core::RandomMemory>(sink.bytes, path)));
  const auto model = read_model(config, path, files).model;
  set_type(*model, "auto", stored_type(files, config.family));
  const core::OrderedJson facts = {
      {"memory", "none"}, {"imported", {{"program", "RWKV-LM"}}}, {"family", "rwkv7"}};
  const bool was_there = save_once(folder, *model, facts, tokenizer);
  return {"RWKV-LM", config.options.arch, model->parameter_count(), was_there};
}

TensorMap rwkv_tensors(const std::string& path) {
  TensorMap tensors = read_safetensors(path);
  if (!tensors.contains(kRwkvEmbedding))
    core::bad_data("{}: not a file of RWKV-LM: it has no {}; give a folder with config.json to -m",
        path, kRwkvEmbedding);
  return tensors;
}

TensorMap rwkv_tensors(const TorchFile& file) {
  StateDict weights(file, file.root(), {});
  TensorMap tensors;
  for (const auto& name : weights.left())
    tensors[name] = take_named(weights, name, /*own_type=*/true);
  return tensors;
}

}  // namespace

void ImportOptions::fields(core::FieldList& f) {
  f("tokenizer", tokenizer,
      "tokenizer.json, or `bytes`: the tokenizer that the model was trained with")
      .short_name = 't';
}

ImportedModel read_checkpoint(const TorchFile& file) {
  ImportedModel read = import_map_of(file).read(file);
  expect_weights(read, file.name());
  return read;
}

std::shared_ptr<nn::Model> made_of(const ImportedModel& read, const std::string& origin) {
  const auto model = blank_model(read, origin);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : model->named_weights())
    torch::Tensor(weight).copy_(read.weights.at(name));
  return model;
}

ImportReport import_model(
    const std::string& path_given, const ImportOptions& options, const std::string& folder) {
  const std::string given = core::followed_snapshot(path_given);
  const NewModelFolder locked(folder);
  if (is_gguf(given)) return import_loaded(load(given), "gguf", options, folder);
  if (has_pickled_weights(given)) {
    const auto loaded = load_pickled(given);
    set_type(*loaded.model, "auto", loaded.stored_type);
    return import_loaded(loaded, "transformers", options, folder);
  }
  if (given.ends_with(".safetensors"))
    return import_rwkv(rwkv_tensors(given), given, options, folder);
  const auto path = checkpoint_at(given);
  const TorchFile file(path);
  if (file.root().find(kRwkvEmbedding) != nullptr)
    return import_rwkv(rwkv_tensors(file), path, options, folder);
  const ImportedModel read = read_checkpoint(file);
  const auto tokenizer = tokenizer_for(options, read.vocabulary);
  const auto model = made_of(read, path);
  core::OrderedJson facts = {{"memory", "none"}};
  facts.update(read.facts);
  const bool was_there = save_once(folder, *model, facts, tokenizer);
  return {facts["imported"]["program"].get<std::string>(), read.options.arch,
      model->parameter_count(), was_there};
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
  loaded.fingerprint = LateDigest(read.fingerprint);
  loaded.config = std::move(stored.json);
  loaded.facts = std::move(stored.config.facts);
  loaded.model->eval();
  return loaded;
}

}  // namespace model
