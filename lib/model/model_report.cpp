#include "model/model_report.h"

#include "core/plain_text.h"
#include "model/checkpoint.h"
#include "model/folder.h"
#include "model/model_path.h"
#include "model/tokenizer_file.h"
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
  core::OrderedJson state = {
      {"bytes", carried.bytes(0)}, {"bytes_per_token", carried.bytes(1) - carried.bytes(0)}};
  if (carried.most_tokens > 0) state["most_tokens"] = carried.most_tokens;
  return state;
}

void flatten(const core::OrderedJson& object, const std::string& before, core::OrderedJson& out) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) flatten(value, before + key + ".", out);
    else out[before + key] = value;
  }
}

// Runs the parts of a check and records the errors that they throw.
class Check {
 public:
  explicit Check(ModelVerdict& verdict) : verdict_(verdict) {}

  template <class Part> void part(const Part& part) {
    try {
      part();
    } catch (const core::Error& error) {
      if (error.code() == core::Code::io) throw;
      found(error.what());
    }
  }
  void found(const std::string& fault) {
    if (!fault.empty()) verdict_.faults.push_back(fault);
  }

 private:
  ModelVerdict& verdict_;
};

void check_own_tokenizer(const std::string& folder, const Config& config) {
  const auto tokenizer = read_own_tokenizer(folder, config.facts);
  if (tokenizer.empty() && !config.facts.tokenizer_fingerprint.empty())
    core::bad_data("{}: has no tokenizer.json, although config.json names it", folder);
  if (tokenizer.empty()) return;
  const auto path = tokenizer_path(folder);
  const auto tokens = text::parse_tokenizer(tokenizer, path)->size();
  if (tokens > static_cast<std::size_t>(config.vocabulary))
    core::bad_data("{}: has {} tokens, but config.json says {}", path, tokens, config.vocabulary);
}

void check_weights(
    const StoredConfig& stored, const TensorFiles& files, Check& check, ModelVerdict& verdict) {
  const StoredWeights weights(stored.config, stored.path, files);
  const auto found = [&](const std::string& fault) { check.found(fault); };
  weights.check(found);
  bool all_fit = true;
  for (std::size_t i = 0; i < weights.size(); ++i) all_fit = all_fit && weights.fits(i);
  if (all_fit) {
    verdict.fingerprint = fingerprint(stored.config, weights, found);
    check.found(other_fingerprint(stored.path, files, verdict.fingerprint));
  } else {
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights.fits(i))
        weights.read_into(i, torch::empty(weights.shape(i), torch::kFloat32), found);
  }
  verdict.tensors = files.size();
  verdict.parameters = weights.parameter_count();
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
  report.update({{"parts", parts_of(weights)}, {"state", state_of(config.options)},
      {"tensors", files.size()}, {"files", files.files().size()}, {"types", types_of(files)}});
  if (!tokenizer.empty()) {
    const auto parsed = text::parse_tokenizer(tokenizer, tokenizer_path(folder));
    report.update({{"tokenizer", text::name_of(parsed->kind())}, {"tokens", parsed->size()},
        {"tokenizer_fingerprint", tokenizer_fingerprint(tokenizer)}});
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

core::OrderedJson ModelVerdict::json() const {
  if (!ok()) return {{"model", folder}, {"ok", false}, {"faults", faults}};
  return {{"model", folder}, {"ok", true}, {"tensors", tensors}, {"parameters", parameters},
      {"fingerprint", fingerprint.hex()}};
}

std::string ModelVerdict::lines() const {
  if (ok())
    return fmt::format("{}: ok, {} tensors, {} parameters, fingerprint {}\n",
        core::printable(folder), tensors, parameters, fingerprint.hex());
  return core::sum_of(faults, [](const auto& fault) { return core::printable(fault) + "\n"; });
}

ModelVerdict check_model(const std::string& given) {
  const std::string folder = model_folder(given);
  expect_model_folder(folder);
  ModelVerdict verdict;
  verdict.folder = given;
  Check check(verdict);
  std::optional<StoredConfig> stored;
  check.part([&] { stored = read_config(folder); });
  check.part([&] {
    if (stored) check_own_tokenizer(folder, stored->config);
    else read_tokenizer(folder);
  });
  std::unique_ptr<TensorFiles> files;
  check.part([&] { files = std::make_unique<TensorFiles>(folder); });
  if (files)
    for (const auto& file : files->files()) check.part([&] { file->verify(); });
  if (stored && files) check.part([&] { check_weights(*stored, *files, check, verdict); });
  if (is_gguf(folder)) return verdict;
  for (const auto& checkpoint : checkpoints(folder))
    check.part([&] { load_checkpoint(checkpoint.path); });
  return verdict;
}

std::string check_models(const std::vector<std::string>& folders,
    const std::function<void(const ModelVerdict&)>& found) {
  std::string first;
  std::size_t count = 0;
  for (const auto& folder : folders) {
    const ModelVerdict verdict = check_model(folder);
    if (!verdict.ok() && count == 0) first = verdict.faults[0];
    count += verdict.faults.size();
    found(verdict);
  }
  return count > 1 ? fmt::format("{} (and {} more)", first, count - 1) : first;
}

}  // namespace model
