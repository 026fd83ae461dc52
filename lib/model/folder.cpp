#include "model/folder.h"

#include "core/file_text.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/model_path.h"
#include "model/tokenizer_file.h"
#include "nn/base/runtime.h"
#include "text/formats/tokenizer_json.h"

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

using core::Code;
using core::fail;

std::string other(const std::string& what, const std::string& path, const std::string& found,
    const std::string& written) {
  if (written.empty() || found == written) return {};
  return fmt::format("{}: is not the {} that was saved with this model ({}, expected {})", path,
      what, found, written);
}

void expect_none(const std::string& fault) {
  if (!fault.empty()) core::bad_data("{}", fault);
}

std::string config_text(const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried) {
  auto config = make_config(model.options, model.vocabulary, facts,
      tokenizer_fingerprint(tokenizer), end_of_document(tokenizer));
  if (const Family* const family = written_family(model.options, facts)) {
    carried.set_ids(config, *family);
    const auto type = model.named_weights().front().second.scalar_type();
    const std::string key = carried.type_key.empty() ? "torch_dtype" : carried.type_key;
    if (!carried.type_key.empty() || type != torch::kFloat32) config[key] = name_of_type(type);
  }
  return core::dump_pretty(config);
}

void write_weights(core::ByteSink& sink, const nn::Model& model, const core::OrderedJson& facts) {
  write_safetensors(sink, weights_to_write(model, written_family(model.options, facts)),
      {{kFingerprintKey, fingerprint(model).hex()}});
}

// Compares the bytes written to it with a file.
class ComparedFile : public core::ByteSink {
 public:
  explicit ComparedFile(const std::string& path) : file_(core::open_source(path)) {}
  using core::ByteSink::write;
  void write(std::span<const std::byte> in) override {
    while (equal_ && !in.empty()) {
      const auto some = std::span(buffer_).first(std::min(in.size(), buffer_.size()));
      equal_ = core::read_fully(*file_, some) == some.size() &&
               std::equal(some.begin(), some.end(), in.begin());
      in = in.subspan(some.size());
    }
  }
  /// Returns whether the file has exactly the bytes written.
  bool equal() { return equal_ && file_->read(std::span(buffer_).first(1)) == 0; }

 private:
  std::unique_ptr<core::ByteSource> file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(std::size_t{1} << 16);
  bool equal_ = true;
};

// Loads a complete folder and adds the adapter (null: none) to its weights. `own` receives the
// fingerprint without the adapter.
Loaded load_folder(const std::string& folder, torch::Device device,
    std::optional<torch::Dtype> dtype, const Adapter* adapter, core::Digest& own,
    WeightTaker* taker = nullptr) {
  StoredConfig stored = read_config(folder);
  Loaded loaded;
  loaded.folder = folder;
  loaded.tokenizer = read_own_tokenizer(folder, stored.config.facts);
  const auto opened = std::make_shared<const TensorFiles>(folder);
  const TensorFiles& files = *opened;
  files.verify();
  loaded.family = stored.config.family == nullptr ? "" : std::string(stored.config.family->type);
  loaded.stored_type = stored_type(files, stored.config.family);
  if (!dtype) dtype = dtype_of(files);
  const auto read = read_model(stored.config, stored.path, files, *dtype, adapter, taker);
  loaded.model = read.model;
  if (read.digested) {
    loaded.fingerprint = LateDigest(read.fingerprint);
    expect_none(other_fingerprint(stored.path, files, read.stored));
  } else {
    loaded.fingerprint = LateDigest([opened, config = stored.config, path = stored.path] {
      return fingerprint(config, StoredWeights(config, path, *opened), refuse);
    });
  }
  own = read.stored;
  loaded.config = std::move(stored.json);
  loaded.facts = std::move(stored.config.facts);
  loaded.model->to(device, *dtype);
  loaded.model->eval();
  return loaded;
}

// Loads the model that a run of train --lora adapts and adds the run's terms.
Loaded load_adapted(const UnfinishedRun& run, const UnfinishedAdapter& terms,
    const std::string& which, torch::Device device, std::optional<torch::Dtype> dtype) {
  if (!core::exists(terms.base))
    fail(Code::no_input,
        "{}: contains an adapter of {}, which does not exist; run this in the folder where train "
        "ran",
        run.folder, terms.base);
  core::Digest own;
  Loaded loaded = load_folder(model_folder(terms.base), device, dtype, terms.adapter.get(), own);
  if (own.hex() != terms.base_fingerprint)
    core::bad_data(
        "{}: contains an adapter of {}, which is a different model now", run.folder, terms.base);
  nn::say(fmt::format(
      "{}: its training has not finished; uses {}, on {}", run.folder, which, terms.base));
  loaded.folder = run.best ? run.folder : run.checkpoint;
  return loaded;
}

Loaded load_unfinished(
    const UnfinishedRun& run, torch::Device device, std::optional<torch::Dtype> asked) {
  StoredConfig stored = parse_config_of(run.folder);
  std::string which;
  if (const auto terms = unfinished_adapter(run, stored.config, which))
    return load_adapted(run, *terms, which, device, asked);
  const auto dtype = asked.value_or(torch::kFloat32);
  Loaded loaded;
  loaded.folder = run.best ? run.folder : run.checkpoint;
  loaded.tokenizer = read_own_tokenizer(run.folder, stored.config.facts);
  const auto read = read_unfinished(run, stored.config, dtype, which);
  nn::say(fmt::format("{}: its training has not finished; uses {}", run.folder, which));
  loaded.model = read.model;
  loaded.fingerprint = LateDigest(read.fingerprint);
  loaded.config = std::move(stored.json);
  loaded.facts = std::move(stored.config.facts);
  loaded.model->to(device, dtype);
  loaded.model->eval();
  return loaded;
}

}  // namespace

const std::vector<std::string_view>& carried_names() {
  static const std::vector<std::string_view> names = {"tokenizer_config.json",
      "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
      "generation_config.json", "tokenizer.model", "vocab.json", "merges.txt"};
  return names;
}

bool is_carried(std::string_view name) { return core::contains(carried_names(), name); }

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

const char* name_of_type(torch::Dtype type) {
  return type == torch::kBFloat16 ? "bfloat16" : type == torch::kHalf ? "float16" : "float32";
}

void expect_model_folder(const std::string& folder) {
  if (is_gguf(folder)) return;
  const std::string config = folder + "/config.json", weights = folder + "/model.safetensors";
  if (!core::exists(config))
    fail(Code::no_input, "{}: not a model's folder: it has no config.json", folder);
  if (core::exists(weights) || core::exists(weights + ".index.json")) return;
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (core::exists(folder + "/" + other))
      fail(Code::no_input, "{}: {} is not supported; convert it: model import {} -o DIR", folder,
          other, folder);
  }
  const auto json = core::read_json(config, kConfigLimit);
  if (json.is_object() && json.contains("tessera"))
    fail(Code::no_input,
        "{}: has no model.safetensors: its training has not finished and has no checkpoint yet; "
        "rerun train",
        folder);
  for (const char* other : {"consolidated.safetensors", "tf_model.h5", "flax_model.msgpack"})
    if (core::exists(folder + "/" + other))
      fail(Code::no_input,
          "{}: has no model.safetensors, and {} is not supported; use the files that transformers "
          "writes",
          folder, other);
  fail(Code::no_input,
      "{}: has no weights: neither model.safetensors nor an index of several files; is the "
      "folder complete?",
      folder);
}

StoredConfig read_config(const std::string& folder) {
  expect_model_folder(folder);
  return parse_config_of(folder);
}

StoredConfig parse_config_of(const std::string& folder) {
  StoredConfig stored;
  if (is_gguf(folder)) {
    stored.path = folder;
    stored.json = gguf_config(GgufFile(folder));
  } else {
    stored.path = folder + "/config.json";
    stored.json = core::read_json(stored.path, kConfigLimit);
  }
  stored.config = parse_config(stored.json, stored.path);
  if (stored.config.part) {
    nn::say(
        fmt::format("{}: loads the text part of the model without its image part", stored.path));
    stored.json = text_config(stored.json);
  }
  if (const auto& ignored = stored.config.ignored; !ignored.empty())
    nn::say(fmt::format("{}: ignores {}, as transformers' {} does", stored.path,
        fmt::join(ignored, ", "), stored.config.family->row.architecture));
  return stored;
}

std::string read_own_tokenizer(const std::string& folder, const TrainingFacts& facts) {
  auto tokenizer = read_tokenizer(folder);
  if (!tokenizer.empty())
    expect_none(other("tokenizer", tokenizer_path(folder), tokenizer_fingerprint(tokenizer),
        facts.tokenizer_fingerprint));
  return tokenizer;
}

std::string written_fingerprint(const TensorFiles& files) {
  const auto saved = files.metadata().find(kFingerprintKey);
  return saved == files.metadata().end() ? "" : saved->second;
}

std::string other_fingerprint(
    const std::string& config_path, const TensorFiles& files, const core::Digest& found) {
  return other("configuration", config_path, found.hex(), written_fingerprint(files));
}

Loaded load(const std::string& path, torch::Device device, std::optional<torch::Dtype> dtype,
    const std::string& adapter_folder, std::shared_ptr<WeightTaker> taker) {
  if (dtype == torch::kBFloat16)
    nn::note_half_products(
        "--dtype bfloat16", "they take several times as long as in float32", device);
  if (const auto run = unfinished_run(path); run && adapter_folder.empty())
    return load_unfinished(*run, device, dtype);
  const auto beside = adapter_folder.empty() ? Beside::refused : Beside::left;
  const std::string folder = model_folder(path, beside);
  std::optional<Adapter> adapter;
  if (!adapter_folder.empty()) {
    expect_model_folder(folder);
    adapter.emplace(adapter_folder);
  }
  core::Digest own;
  Loaded loaded =
      load_folder(folder, device, dtype, adapter ? &*adapter : nullptr, own, taker.get());
  loaded.taker = std::move(taker);
  loaded.adapter = adapter_folder;
  return loaded;
}

void save(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried) {
  core::make_folder(folder);
  core::write_file(folder + "/config.json", config_text(model, facts, tokenizer, carried));
  if (!tokenizer.empty()) core::write_file(folder + "/tokenizer.json", tokenizer + "\n");
  for (const auto& file : carried.files) core::write_file(folder + "/" + file.name, file.bytes);
  core::Output weights(folder + "/model.safetensors");
  write_weights(weights, model, facts);
  weights.commit();
}

bool is_saved(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried) {
  const auto path_of = [&](std::string_view name) { return fmt::format("{}/{}", folder, name); };
  const auto holds = [&](std::string_view name, const auto& write) {
    const std::string path = path_of(name);
    if (!core::exists(path)) return false;
    ComparedFile file(path);
    write(file);
    return file.equal();
  };
  const auto holds_text = [&](std::string_view name, const std::string& text) {
    return holds(name, [&](core::ByteSink& sink) { sink.write(text); });
  };
  const bool tokenizers = tokenizer.empty() ? !core::exists(path_of("tokenizer.json"))
                                            : holds_text("tokenizer.json", tokenizer + "\n");
  const auto& names = carried_names();
  const auto others = std::count_if(
      names.begin(), names.end(), [&](auto name) { return core::exists(path_of(name)); });
  return tokenizers && others == std::ssize(carried.files) &&
         std::all_of(carried.files.begin(), carried.files.end(),
             [&](const auto& file) { return holds_text(file.name, file.bytes); }) &&
         holds_text("config.json", config_text(model, facts, tokenizer, carried)) &&
         holds(
             "model.safetensors", [&](core::ByteSink& sink) { write_weights(sink, model, facts); });
}

bool is_model_file(std::string_view name) {
  return name == "config.json" || name == "tokenizer.json" || name == "model.safetensors" ||
         name == kAdapterConfigFile || name == kAdapterWeightsFile || is_carried(name);
}

std::string tokenizer_fingerprint(const std::string& tokenizer) {
  return tokenizer.empty() ? "" : core::hash128(tokenizer).hex();
}

void check_tokenizer(const Loaded& loaded, const shard::Header& header, const std::string& name) {
  const std::string own = loaded.facts.tokenizer_fingerprint.empty()
                              ? tokenizer_fingerprint(loaded.tokenizer)
                              : loaded.facts.tokenizer_fingerprint;
  const std::string theirs = tokenizer_fingerprint(header.tokenizer);
  if (!own.empty() && !theirs.empty() && own != theirs)
    core::bad_data(
        "{}: has tokenizer {}, but {} was trained with {}; tokenize the text with the model's "
        "tokenizer",
        name, theirs, loaded.folder, own);
  // A model may have more rows than its tokenizer has tokens: GPT-2's 50,257 padded to 50,304.
  const bool padded = !own.empty() && own == theirs;
  const auto rows = static_cast<std::uint64_t>(loaded.model->vocabulary);
  if (padded ? header.vocabulary > rows : header.vocabulary != rows)
    core::bad_value(name, "its vocabulary", header.vocabulary,
        fmt::format("{}, that of {}; tokenize the text with the model's tokenizer",
            loaded.model->vocabulary, loaded.folder));
}

void tokenizer_field(core::FieldList& f, std::string& path) {
  f("tokenizer", path, "tokenizer.json, or `bytes`, if the model's folder has no tokenizer")
      .short_name = 't';
}

void give_tokenizer(Loaded& loaded, const std::string& path) {
  if (path.empty()) return;
  const auto given = text::load_tokenizer(path)->json();
  if (!loaded.tokenizer.empty() && loaded.tokenizer != given)
    core::bad_data("{}: its tokenizer differs from {}; leave --tokenizer out", loaded.folder, path);
  const std::string own = loaded.facts.tokenizer_fingerprint, theirs = tokenizer_fingerprint(given);
  if (!own.empty() && theirs != own)
    core::bad_data(
        "{}: was trained with tokenizer {}, but {} is {}", loaded.folder, own, path, theirs);
  loaded.tokenizer = given;
}

}  // namespace model
