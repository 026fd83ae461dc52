#include "model/model_report.h"

#include <algorithm>
#include <map>

#include "model/folder.h"
#include "model/model_path.h"
#include "model/tensor_files.h"
#include "model/tokenizer_file.h"
#include "model/weights.h"
#include "nn/arch/carried_state.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

constexpr std::string_view kLayers = ".h.";

// Maps "transformer.h.3.attn.c_attn.weight" to "transformer.h.attn" and "lm_head.weight" to
// "lm_head".
std::string part_of(const std::string& weight) {
  const auto at = weight.find(kLayers);
  if (at == std::string::npos) return weight.substr(0, weight.rfind('.'));
  const auto begin = weight.find('.', at + kLayers.size());
  return weight.substr(0, at + kLayers.size() - 1) +
         weight.substr(begin, weight.find('.', begin + 1) - begin);
}

core::OrderedJson parts_of(const StoredWeights& weights) {
  auto parts = core::OrderedJson::object();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto part = part_of(weights.name(i));
    parts[part] = parts.value(part, std::int64_t{0}) + c10::multiply_integers(weights.shape(i));
  }
  return parts;
}

core::OrderedJson types_of(const TensorFiles& files) {
  std::map<std::string, std::int64_t> types;
  for (const auto& name : files.tensors()) {
    const auto& entry = files.entry(name);
    types[files.type_of(name)] += entry.elements();
  }
  return types;
}

// Returns the bytes of State per stream, in float32.
core::OrderedJson state_of(const nn::ModelOptions& options) {
  const auto carried = nn::carried_state(options);
  core::OrderedJson state = {{"bytes", carried.bytes(0)},
                             {"bytes_per_token", carried.bytes(1) - carried.bytes(0)}};
  if (carried.most_tokens > 0) state["most_tokens"] = carried.most_tokens;
  return state;
}

void flatten(const core::OrderedJson& object, const std::string& before, core::OrderedJson& out) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      flatten(value, before + key + ".", out);
    else
      out[before + key] = value;
  }
}

}  // namespace

core::OrderedJson describe_model(const std::string& given) {
  const std::string folder = model_folder(given);
  const auto [path, json, config] = read_config(folder);
  const auto tokenizer = read_own_tokenizer(folder, config.facts);
  const TensorFiles files(folder);
  const StoredWeights weights(config, path, files);
  weights.check(refuse);
  core::OrderedJson report = {{"model", given}, {"arch", config.options.arch}};
  if (config.family != nullptr) report["family"] = config.family->type;
  report["vocabulary"] = config.vocabulary;
  report["parameters"] = weights.parameter_count();
  if (config.options.transformer.experts.any())
    report["active_parameters"] = weights.active_parameter_count();
  report["parts"] = parts_of(weights);
  report["state"] = state_of(config.options);
  report["tensors"] = files.size();
  report["files"] = files.files().size();
  report["types"] = types_of(files);
  if (!tokenizer.empty()) {
    const auto parsed = text::parse_tokenizer(tokenizer, tokenizer_path(folder));
    report["tokenizer"] = text::name_of(parsed->kind());
    report["tokens"] = parsed->size();
    report["tokenizer_fingerprint"] = tokenizer_fingerprint(tokenizer);
  }
  const auto written = written_fingerprint(files);
  report["fingerprint"] = written.empty() ? fingerprint(config, weights, refuse).hex() : written;
  report["options"] = core::to_json(config.options);
  if (!config.facts.all.empty()) report["trained"] = config.facts.all;
  return report;
}

core::OrderedJson flattened(const core::OrderedJson& report) {
  auto out = core::OrderedJson::object();
  flatten(report, "", out);
  return out;
}

}  // namespace model
