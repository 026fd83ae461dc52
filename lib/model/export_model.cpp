#include "model/export_model.h"

#include <filesystem>

#include "core/build_info.h"
#include "core/file_text.h"
#include "core/plain_text.h"
#include "model/gguf/gguf_keys.h"
#include "model/tokenizer_file.h"
#include "nn/layers/layers.h"

namespace model {
namespace {

constexpr const char* kCardHead =
    "---\n# Written by model export. Fill in or delete empty fields.\n";
constexpr std::size_t kMostResultBytes = std::size_t{1} << 20;

std::string block(const core::OrderedJson& json) {
  return "```\n" + core::dump_pretty(json) + "\n```\n";
}

std::string card_text(const std::string& name, const Loaded& loaded, const core::OrderedJson& facts,
    const std::string& results) {
  std::string text = kCardHead;
  text +=
      "license:\nbase_model:\ndatasets:\nlanguage:\nlibrary_name: transformers\n"
      "pipeline_tag: text-generation\n---\n\n";
  text += fmt::format(
      "# {}\n\nA model of the family {} with {} parameters, written by Tessera {} (git {}).\n"
      "Fingerprint of the model that it was written from: {}\n\n",
      core::printable(name), facts["family"].get<std::string>(), loaded.model->parameter_count(),
      core::build::kVersion, core::build::kGit, loaded.fingerprint.hex());
  if (!loaded.adapter.empty()) text += "It contains the terms of a LoRA adapter.\n\n";
  text +=
      "## Data\n\nFingerprints (XXH3-128) of what the training read; add names and licences.\n\n";
  const auto training = facts.find("training");
  for (const auto& [key, what] : {std::pair{"data", "training data"}, {"valid", "validation data"},
           {"tokenizer", "tokenizer"}, {"order", "order of the batches"},
           {"targets", "targets of a teacher"}, {"from", "base model"}})
    if (training != facts.end() && training->is_object() && training->contains(key))
      if (const auto hash = (*training)[key]; hash.is_string() && !hash.get<std::string>().empty())
        text += fmt::format("- {}: {}\n", what, hash.get<std::string>());
  text += "\n## Training\n\n" + block(facts);
  if (!results.empty())
    text += "\n## Results\n\n" +
            block(core::parse_ordered_json(core::read_text(results, kMostResultBytes), results));
  return text;
}

constexpr std::array kBiases = {"qkv", "output", "feed-forward", "norm"};
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 24;
constexpr const char* kHead = "lm_head.weight";

void set_biases(nn::TransformerOptions& options, unsigned kinds) {
  options.bias = kinds != 0;
  options.bias_of.clear();
  for (std::size_t i = 0; i < kBiases.size(); ++i)
    if (kinds >> i & 1) options.bias_of.emplace_back(kBiases[i]);
}

// Adds the smallest set of biases that makes the options the family's. Returns the options
// unchanged if no set does, or if the architecture has no such sets.
nn::ModelOptions with_biases(const Family& family, const nn::ModelOptions& options) {
  if (options.arch != "transformer") return options;
  unsigned there = 0;
  for (std::size_t i = 0; i < kBiases.size(); ++i)
    if (options.transformer.has_bias(kBiases[i])) there |= 1u << i;
  nn::ModelOptions best = options;
  int fewest = static_cast<int>(kBiases.size()) + 1;
  for (unsigned kinds = 0; kinds < 1u << kBiases.size(); ++kinds) {
    nn::ModelOptions tried = options;
    set_biases(tried.transformer, kinds);
    const int count = __builtin_popcount(kinds);
    if ((kinds & there) != there || count >= fewest || !unlike(family, tried).empty()) continue;
    best = tried, fewest = count;
  }
  return best;
}

bool holds_exactly(const nn::Model& model, torch::Dtype type) {
  for (const auto& [name, values] : model.named_weights())
    if (!values.to(type).to(values.scalar_type()).equal(values)) return false;
  return true;
}

// Removes what an interrupted export of another model left, which would be read as a part of this
// model.
void remove_others(
    const std::string& folder, const std::string& tokenizer, const Carried& carried) {
  const auto remove = [&](std::string_view name) {
    std::error_code ignored;
    std::filesystem::remove(fmt::format("{}/{}", folder, name), ignored);
  };
  if (tokenizer.empty()) remove("tokenizer.json");
  for (const auto name : carried_names())
    if (std::ranges::none_of(carried.files, [&](const auto& file) { return file.name == name; }))
      remove(name);
}

[[noreturn]] void refuse_folder(const std::string& folder, const char* what) {
  core::fail(
      core::Code::cannot_create, "{}: already contains {}; give another folder", folder, what);
}

// Returns the family to write: the requested one, the model's own, or the first family that has a
// GGUF architecture and the model's shape.
const Family& family_to_write(const Loaded& loaded, const std::string& asked) {
  const std::string type = asked.empty() ? loaded.family : asked;
  if (!type.empty()) {
    const Family& family = family_named(type, loaded.folder);
    if (gguf_architecture_of(type) == nullptr)
      core::bad_config("{}: GGUF export of {} is not supported; supported: {}", loaded.folder, type,
          fmt::join(gguf_architectures(), ", "));
    return family;
  }
  for (const auto& name : family_names()) {
    const Family& family = family_named(name, loaded.folder);
    if (gguf_architecture_of(name) != nullptr && unlike(family, loaded.model->options).empty())
      return family;
  }
  core::bad_config("{}: cannot be exported as GGUF: its shape matches none of {}", loaded.folder,
      fmt::join(gguf_architectures(), ", "));
}

// A type of tensors of a GGUF file.
struct TypeToWrite {
  std::string_view dtype, name;
  std::uint32_t file_type;  // llama.cpp's number for a file most of whose tensors have it
  float most;               // largest magnitude that it can express
};
constexpr float kMostHalf = 65504, kMostFloat = 3.3e38F;
constexpr std::array kTypesToWrite = {TypeToWrite{"float32", "F32", 0, kMostFloat},
    TypeToWrite{"float16", "F16", 1, kMostHalf}, TypeToWrite{"q4_0", "Q4_0", 2, 8 * kMostHalf},
    TypeToWrite{"q4_1", "Q4_1", 3, kMostHalf}, TypeToWrite{"q8_0", "Q8_0", 7, 127 * kMostHalf},
    TypeToWrite{"bfloat16", "BF16", 32, kMostFloat}};

// Returns the one of a --dtype, or of a GGUF type's name.
const TypeToWrite& type_of(std::string_view name) {
  return *std::ranges::find_if(
      kTypesToWrite, [&](const auto& of) { return of.dtype == name || of.name == name; });
}

// Returns whether a value that was written as a float32 is the nearest one to `value`.
bool same_in_float32(const core::Json& value, const core::Json& read) {
  if (value.is_number_float() && read.is_number())
    return static_cast<float>(value.get<double>()) == static_cast<float>(read.get<double>());
  return value == read;
}

// Checks that the keys describe the model's function. It writes a file with these keys and the
// tensors whose presence or values are read, and reads it back.
void expect_said(const nn::ModelOptions& options, std::int64_t vocabulary, const Family& family,
    const GgufMetadata& keys, std::vector<GgufNewTensor> tensors, const std::vector<float>& factors,
    const std::string& name) {
  for (auto& tensor : tensors) {
    tensor.type = gguf_type_to_write("F32");
    if (tensor.name != kGgufRopeFactors)
      tensor.shape = tensor.name == "token_embd.weight" ? std::vector{vocabulary, std::int64_t{1}}
                                                        : std::vector<std::int64_t>{1};
  }
  core::MemorySink sink;
  write_gguf(sink, keys, tensors, [&](std::size_t i) {
    return tensors[i].name == kGgufRopeFactors
               ? factors
               : std::vector<float>(tensors[i].bytes() / sizeof(float));
  });
  const GgufFile file(sink.bytes, name);
  const auto config = gguf_config(file);
  std::int64_t rows = 0;
  const auto& other = family_named(config["model_type"], name);
  auto read = family_options(other, config, name, &rows);
  const auto own =
      core::parse_json(core::dump(family_config(family, options, vocabulary, -1)), name);
  auto asked = family_options(family, own, name, &rows);
  for (auto* each : {&read, &asked}) each->shape.dropout = each->shape.attention_dropout = 0;
  const auto has = core::to_json(asked), gives = core::to_json(read);
  for (const auto& [key, value] : has.items())
    if (!same_in_float32(value, gives.at(key)))
      core::bad_config("{}: GGUF cannot express {} {}", name, key, core::dump(value));
}

GgufIds ids_of(const Loaded& loaded) {
  const auto id = [&](const char* key) {
    const auto found = loaded.config.find(key);
    return found != loaded.config.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                                      : -1;
  };
  return {id("bos_token_id"), id("pad_token_id"), end_tokens(loaded.folder, loaded.config)};
}

// Returns a tensor's numbers in the order of the file, before they are packed.
std::vector<float> numbers_of(
    const torch::Tensor& weight, const GgufPlace& place, std::int64_t head_width) {
  auto values = weight.detach().to(torch::kCPU, torch::kFloat32);
  if (place.turned) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(values.size(0)));
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = gguf_family_row(static_cast<std::int64_t>(i), head_width);
    values = values.index_select(0, torch::tensor(order));
  }
  if (place.one_more) values = values + 1;
  values = values.contiguous();
  const auto* const first = values.const_data_ptr<float>();
  return {first, first + values.numel()};
}

void expect_finite(const std::vector<float>& numbers, const GgufNewTensor& tensor) {
  const float most = type_of(tensor.type->name).most;
  if (std::any_of(numbers.begin(), numbers.end(), [&](float x) { return !(std::abs(x) <= most); }))
    core::bad_data("--dtype: {} has values beyond the range of {}; use bfloat16", tensor.name,
        tensor.type->name);
}

// Throws Error{cannot_create} if `folder` contains a model or tokenizer that no export or import
// wrote. Cheap enough for the start of a command: reads no weights.
void expect_no_other_model(const std::string& folder) {
  const auto there = [&](const char* name) { return core::exists(folder + "/" + name); };
  if (!there("config.json")) {
    if (there("model.safetensors")) refuse_folder(folder, "a model");
    if (there("tokenizer.json")) refuse_folder(folder, "a tokenizer");
    for (const auto name : carried_names())
      if (const std::string file(name); there(file.c_str())) refuse_folder(folder, file.c_str());
    return;
  }
  // The folder comes from an export or import, complete or interrupted. A training run has more
  // files.
  const bool own = core::read_json(folder + "/config.json", kMostConfigBytes).contains("tessera");
  if (!own || there("metrics.jsonl")) refuse_folder(folder, "a model");
}

// Writes README.md in a folder that has no weights yet, but replaces none that another program or
// a person wrote. It names the family, the build, hashes of the training's data, its settings
// (`facts`), and the figures in the file `results`; empty: none. Throws Error{bad_data} if that
// file is not JSON, and the errors of files.
void write_model_card(const std::string& folder, const Loaded& loaded,
    const core::OrderedJson& facts, const std::string& results) {
  const std::string path = folder + "/README.md";
  // Before the weights, a card of ours is one of an interrupted export.
  if (core::exists(folder + "/model.safetensors")) return;
  if (core::exists(path) && !core::read_text(path).starts_with(kCardHead)) return;
  const auto absolute = std::filesystem::absolute(folder).lexically_normal();
  const auto name = absolute.has_filename() ? absolute : absolute.parent_path();
  core::write_file(path, card_text(name.filename(), loaded, facts, results));
}

}  // namespace

std::shared_ptr<const nn::Model> in_shape_of(
    const Family& family, const std::shared_ptr<const nn::Model>& model, const std::string& name) {
  if (unlike(family, model->options).empty()) return model;
  nn::ModelOptions options = model->options;
  const bool scaled = options.vocabulary.scale_embedding;
  options.vocabulary.scale_embedding = false;
  options.vocabulary.tied = options.vocabulary.tied && !scaled;
  options = with_biases(family, options);
  if (const auto different = unlike(family, options); !different.empty())
    core::bad_config("{}: cannot be exported as {}: {}", name, family.type, different);
  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;
  const auto made = std::make_shared<nn::Model>(options, model->vocabulary);
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [weight, values] : model->named_weights()) weights[weight] = values;
  auto& embedding = weights.at(options.arch + ".wte.weight");
  if (weights.count(kHead) == 0) weights[kHead] = embedding.clone();
  if (scaled) embedding = embedding * std::sqrt(static_cast<double>(options.shape.d_model));
  for (const auto& [weight, values] : made->named_weights()) {
    const auto found = weights.find(weight);
    if (found == weights.end()) torch::Tensor(values).zero_();  // a missing bias is zero
    else torch::Tensor(values).copy_(found->second);
  }
  made->eval();
  return made;
}

void ExportOptions::fields(core::FieldList& f) {
  f("family", family, "family of transformers whose config.json and weight names are written",
      family_names());
  f("dtype", dtype, "data type of the weights; auto: that of the model's files",
      {"auto", "float32", "bfloat16", "float16", "q8_0", "q4_0", "q4_1"});
  f("output-format", form,
      "a folder for transformers, a GGUF file for llama.cpp, or a file of RWKV-LM",
      {"transformers", "gguf", "rwkv"});
  f("results", results, "JSON file of figures, such as those of eval-ppl --json, for README.md");
}

void set_type(const nn::Model& model, const std::string& name, torch::Dtype stored) {
  if (name.starts_with("q")) core::bad_usage("--dtype {}: requires --output-format gguf", name);
  torch::Dtype type = stored;
  if (name == "auto") {
    if (!holds_exactly(model, type)) type = torch::kFloat32;
  } else {
    type = name == "bfloat16"  ? torch::kBFloat16
           : name == "float16" ? torch::kHalf
                               : torch::kFloat32;
  }
  if (type == torch::kFloat32) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [weight, values] : model.named_weights()) {
    const auto narrow = values.to(type);
    if (!torch::isfinite(narrow).all().item<bool>())
      core::bad_data("--dtype: {} has values beyond the range of {}; use bfloat16", weight, name);
    torch::Tensor(values).set_data(narrow);
  }
}

bool save_once(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried) {
  if (!core::exists(folder + "/model.safetensors")) {
    remove_others(folder, tokenizer, carried);
    save(folder, model, facts, tokenizer, carried);
    return false;
  }
  if (!is_saved(folder, model, facts, tokenizer, carried)) refuse_folder(folder, "a model");
  return true;
}

NewModelFolder::NewModelFolder(const std::string& folder)
    : lock_(folder, "another process is writing a model there; wait for it, or give another folder",
          core::FolderLock::Absent::made) {
  expect_no_other_model(folder);
}

ExportReport export_model(
    const Loaded& loaded, const ExportOptions& options, const std::string& folder) {
  const NewModelFolder locked(folder);
  std::string type = options.family.empty() ? loaded.family : options.family;
  if (type.empty()) {
    const Family* const first = family_of(loaded.model->options);
    if (first == nullptr)
      core::bad_usage(
          "{}: --family is missing; give the family of transformers to export to", loaded.folder);
    type = first->type;
  }
  const auto model = in_shape_of(family_named(type, loaded.folder), loaded.model, loaded.folder);
  core::OrderedJson facts = {{"memory", loaded.facts.memory},
      {"memory_temperature", loaded.facts.memory_temperature}, {"segment", loaded.facts.segment}};
  facts.update(core::OrderedJson(loaded.facts.all));
  facts["family"] = type;
  set_type(*model, options.dtype, loaded.stored_type);
  write_model_card(folder, loaded, facts, options.results);
  return {type, save_once(folder, *model, facts, loaded.tokenizer, carried_of(loaded))};
}

ExportReport merge_model(
    const Loaded& loaded, const ExportOptions& options, const std::string& folder) {
  ExportOptions merged = options;
  if (merged.dtype == "auto") merged.dtype = name_of_type(loaded.stored_type);
  return export_model(loaded, merged, folder);
}

GgufExport export_gguf(const Loaded& loaded, const std::string& family_asked,
    const std::string& dtype, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const Family& family = family_to_write(loaded, family_asked);
  const auto& architecture = *gguf_architecture_of(std::string(family.type));
  const auto model = in_shape_of(family, loaded.model, loaded.folder);
  const auto config = core::parse_json(
      core::dump(family_config(family, model->options, model->vocabulary, -1)), loaded.folder);
  const auto heads = nn::head_shape(model->options.shape, model->options.transformer);
  const auto& of_file = type_of(dtype == "auto" ? name_of_type(loaded.stored_type) : dtype);
  const GgufType& type = *gguf_type_to_write(of_file.name);
  GgufExport report{std::string(architecture.name), {}};

  auto keys = gguf_keys(architecture, config);
  keys.emplace_back("general.file_type", of_file.file_type);
  keys.emplace_back("general.quantization_version", std::uint32_t{2});
  const auto factors = gguf_rope_factors(config);
  std::vector<GgufNewTensor> tensors;
  std::vector<std::pair<torch::Tensor, GgufPlace>> weights;
  std::int64_t narrowed = 0;
  for (const auto& [name, weight] : weights_to_write(*model, &family)) {
    const auto place = gguf_place(architecture, name);
    if (place.name.empty())
      core::bad_config(
          "{}: GGUF files of {} cannot express {}", loaded.folder, architecture.name, name);
    const GgufType* own = weight.dim() == 1 ? gguf_type_to_write("F32") : &type;
    if (weight.size(-1) % static_cast<std::int64_t>(own->elements) != 0)
      own = gguf_type_to_write("F16"), ++narrowed;
    tensors.push_back({place.name, weight.sizes().vec(), own});
    weights.emplace_back(weight, place);
  }
  if (narrowed > 0)
    report.notes.push_back(
        fmt::format("wrote {} of {} tensors as float16, since their rows are not multiples of 32",
            narrowed, tensors.size()));
  if (!factors.empty())
    tensors.push_back({kGgufRopeFactors, {std::ssize(factors)}, gguf_type_to_write("F32")});
  expect_said(model->options, model->vocabulary, family, keys, tensors, factors, loaded.folder);

  if (!loaded.tokenizer.empty()) {
    std::string remark;
    for (auto& key :
        gguf_tokenizer_keys(loaded.tokenizer, model->vocabulary, ids_of(loaded), remark))
      keys.push_back(std::move(key));
    if (!remark.empty()) report.notes.push_back(remark);
    if (auto chat = chat_source_of(loaded.folder); !chat.empty())
      keys.emplace_back("tokenizer.chat_template", std::move(chat));
  } else {
    keys.emplace_back("tokenizer.ggml.model", std::string("none"));
    report.notes.emplace_back("the model has no tokenizer, so the file has none");
  }
  core::Output out(path);
  write_gguf(out, keys, tensors, [&](std::size_t i) {
    auto numbers =
        i < weights.size() ? numbers_of(weights[i].first, weights[i].second, heads.width) : factors;
    expect_finite(numbers, tensors[i]);
    return numbers;
  });
  out.commit();
  return report;
}

}  // namespace model
