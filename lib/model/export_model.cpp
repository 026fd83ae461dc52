#include "model/export_model.h"

#include <filesystem>

#include "core/file_text.h"
#include "model/model_card.h"
#include "nn/layers/layers.h"

namespace model {
namespace {

constexpr std::array kBiases = {"qkv", "output", "feed-forward", "norm"};
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 24;
constexpr const char* kEmbedding = "transformer.wte.weight";
constexpr const char* kHead = "lm_head.weight";

void set_biases(nn::TransformerOptions& options, unsigned kinds) {
  options.bias = kinds != 0;
  options.bias_of.clear();
  for (std::size_t i = 0; i < kBiases.size(); ++i)
    if (kinds >> i & 1) options.bias_of.emplace_back(kBiases[i]);
}

// Adds the smallest set of biases that makes the options the family's. Returns the options
// unchanged if no set does.
nn::ModelOptions with_biases(const Family& family, const nn::ModelOptions& options) {
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
    if (std::none_of(carried.files.begin(), carried.files.end(),
            [&](const auto& file) { return file.name == name; }))
      remove(name);
}

[[noreturn]] void refuse_folder(const std::string& folder, const char* what) {
  core::fail(
      core::Code::cannot_create, "{}: already contains {}; give another folder", folder, what);
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
  if (weights.count(kHead) == 0) weights[kHead] = weights.at(kEmbedding).clone();
  if (scaled)
    weights[kEmbedding] =
        weights.at(kEmbedding) * std::sqrt(static_cast<double>(options.shape.d_model));
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
      {"auto", "float32", "bfloat16", "float16", "q8_0"});
  f("output-format", form, "a folder for transformers, or a GGUF file for llama.cpp",
      {"transformers", "gguf"});
  f("results", results, "JSON file of figures, such as those of eval-ppl --json, for README.md");
}

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

void set_type(const nn::Model& model, const std::string& name, torch::Dtype stored) {
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
  if (options.dtype == "q8_0") core::bad_usage("--dtype q8_0: requires --output-format gguf");
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

}  // namespace model
