#include "model/adapter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "model/checkpoint.h"
#include "model/families/config_keys.h"
#include "text/tokenizer/regex.h"

namespace model {
namespace {

using core::Code;
using core::fail;

constexpr std::size_t kConfigBytes = std::size_t{1} << 24;
constexpr std::int64_t kMostRank = std::int64_t{1} << 24;
constexpr std::string_view kBase = "base_model.model.";
constexpr std::string_view kWeight = ".weight";

// Keys that do not change the function of a trained adapter, or that the code below reads.
constexpr std::array kKnown = {"peft_type",
                               "task_type",
                               "auto_mapping",
                               "peft_version",
                               "revision",
                               "inference_mode",
                               "r",
                               "target_modules",
                               "exclude_modules",
                               "lora_alpha",
                               "lora_dropout",
                               "fan_in_fan_out",
                               "bias",
                               "use_rslora",
                               "modules_to_save",
                               "init_lora_weights",
                               "rank_pattern",
                               "alpha_pattern",
                               "layers_to_transform",
                               "layers_pattern",
                               "megatron_core",
                               "qalora_group_size",
                               "runtime_config",
                               "ensure_weight_tying",
                               "eva_config",
                               "base_model_name_or_path"};

bool is_set(const core::Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_number() || !value.empty();
}

// Compiles a pattern for whole names, without its redundant anchors. text::Regex refuses
// lookbehind, so matches() may start at the beginning of a match.
text::Regex whole_pattern(const std::string& before, std::string pattern, const std::string& key,
                          const std::string& origin) {
  if (pattern.starts_with('^')) pattern.erase(0, 1);
  if (pattern.ends_with('$') && !pattern.ends_with("\\$")) pattern.pop_back();
  try {
    return text::Regex(before + "(?:" + pattern + R"()\z)");
  } catch (const core::Error& error) {
    fail(Code::bad_config, "{}: \"{}\": {}", origin, key, error.what());
  }
}

// Matches the whole name or its part after a dot.
text::Regex ending(const std::string& pattern, const std::string& key, const std::string& origin) {
  return whole_pattern(R"((?:.*\.)?)", pattern, key, origin);
}

bool matches(const text::Regex& regex, const std::string& name) {
  text::MatchBudget budget;
  budget.add(name.size());
  const char* const begin = name.data();
  const auto found = regex.find(begin, begin, begin + name.size(), budget);
  return found && found->begin == begin;
}

bool ends_with_module(const std::string& name, const std::string& module) {
  return name == module || (name.size() > module.size() && name.ends_with(module) &&
                            name[name.size() - module.size() - 1] == '.');
}

// Selects modules: a list holds ends of names, a text is a pattern for the whole name.
struct Modules {
  std::vector<std::string> ends;
  std::optional<text::Regex> whole;

  bool has(const std::string& module) const {
    return (whole && matches(*whole, module)) ||
           std::any_of(ends.begin(), ends.end(),
                       [&](const auto& end) { return ends_with_module(module, end); });
  }
};

Modules modules_of(const core::Json& config, const char* key, const ConfigKeys& keys) {
  Modules modules;
  if (!keys.has(key)) return modules;
  if (!config[key].is_string()) {
    modules.ends = keys.texts(key);
    return modules;
  }
  modules.whole = whole_pattern("", config[key].get<std::string>(), key, keys.origin());
  return modules;
}

// A value for the modules that a pattern matches. The first matching pattern applies.
struct Pattern {
  text::Regex module;
  double value;
};

std::vector<Pattern> patterns_of(const core::Json& config, const char* key,
                                 const ConfigKeys& keys) {
  std::vector<Pattern> patterns;
  if (!keys.has(key)) return patterns;
  if (!config[key].is_object()) keys.unsupported(key, "a value that is not an object");
  for (const auto& [pattern, value] : config[key].items()) {
    if (!value.is_number()) keys.unsupported(key, core::dump(value));
    patterns.push_back({ending(pattern, key, keys.origin()), value.get<double>()});
  }
  return patterns;
}

double value_of(const std::vector<Pattern>& patterns, const std::string& module, double otherwise) {
  for (const auto& pattern : patterns)
    if (matches(pattern.module, module)) return pattern.value;
  return otherwise;
}

std::vector<std::int64_t> layers_of(const core::Json& config, const ConfigKeys& keys) {
  constexpr const char* kKey = "layers_to_transform";
  std::vector<std::int64_t> layers;
  if (!keys.has(kKey)) return layers;
  const core::Json list =
      config[kKey].is_array() ? config[kKey] : core::Json::array({config[kKey]});
  for (const auto& layer : list) {
    if (!layer.is_number_integer()) keys.unsupported(kKey, core::dump(layer));
    layers.push_back(layer.get<std::int64_t>());
  }
  return layers;
}

// Returns the number after the first name in `holders`, or -1 if there is none.
std::int64_t layer_of(const std::string& module, const std::vector<std::string>& holders) {
  std::string before;
  for (std::size_t begin = 0; begin < module.size();) {
    const auto end = std::min(module.find('.', begin), module.size());
    const std::string part = module.substr(begin, end - begin);
    const bool number =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number &&
        (holders.empty() || std::find(holders.begin(), holders.end(), before) != holders.end()))
      return std::stoll(part);
    before = part;
    begin = end + 1;
  }
  return -1;
}

void expect_no_other_maths(const core::Json& config, const ConfigKeys& keys) {
  const std::string type = keys.text("peft_type", "LORA");
  if (type != "LORA")
    fail(Code::bad_config, "{}: an adapter of the kind {}; only LoRA is supported", keys.origin(),
         type);
  if (keys.text("bias", "none") != "none")
    keys.unsupported("bias", '"' + keys.text("bias", "none") + '"');
  if (keys.has("init_lora_weights") && config["init_lora_weights"].is_string()) {
    // Other initialisations subtract their first term from the model's own matrices.
    const auto first = config["init_lora_weights"].get<std::string>();
    if (first != "gaussian" && first != "eva" && first != "orthogonal")
      fail(Code::bad_config,
           "{}: \"init_lora_weights\": \"{}\" is not supported, since it changes the model's own "
           "matrices; save the adapter as plain LoRA, or merge it in peft",
           keys.origin(), first);
  }
  for (const auto& [key, value] : config.items())
    if (is_set(value) && std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end())
      keys.unsupported(key.c_str(), core::dump(value).substr(0, 60));
}

core::Json config_of(const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfigFile;
  if (!core::exists(path))
    fail(Code::no_input, "{}: not an adapter's folder: it has no {}{}", folder, kAdapterConfigFile,
         latest_checkpoint(folder)
             ? "; its training has not finished: give the folder as the model, without an adapter"
             : "");
  const std::string weights = folder + "/" + kAdapterWeightsFile;
  if (!core::exists(weights))
    fail(Code::no_input, "{}: has no {}{}", folder, kAdapterWeightsFile,
         core::exists(folder + "/adapter_model.bin")
             ? ", and adapter_model.bin is not read; save it with safe_serialization=True"
             : "; is the folder complete?");
  return core::read_json(path, kConfigBytes);
}

std::string shown(torch::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

// A matrix of the model's files, with the names that adapters use.
struct AdaptedMatrix {
  std::size_t weight;  // index in StoredWeights
  Piece piece;
  std::vector<std::int64_t> shape;  // (out, in)
  bool embedding, linear;
};

std::map<std::string, AdaptedMatrix> adapted_matrices(const Config& config,
                                                      const StoredWeights& weights) {
  std::map<std::string, AdaptedMatrix> places;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& name = weights.name(i);
    const auto& shape = weights.shape(i);
    if (!name.ends_with(kWeight) || name.find(".experts.") != name.npos) continue;  // peft has none
    const bool embedding = name.ends_with(".wte.weight"), position = name.ends_with(".wpe.weight");
    const bool head = name == "lm_head.weight";
    for (const auto& piece : pieces_of(config.family, config.options, name, shape[0])) {
      auto own = shape;
      own[0] = piece.rows;
      const bool linear = own.size() == 2 && !embedding && !position && !head;
      places.emplace(piece.tensor.substr(0, piece.tensor.size() - kWeight.size()),
                     AdaptedMatrix{i, piece, own, embedding, linear});
    }
  }
  return places;
}

// The two parts of a tensor's name in an adapter, for example "model.layers.0.self_attn.q_proj" and
// ".lora_A.weight".
struct Named {
  std::string module, kind;
};

Named named(const std::string& tensor, const std::string& prefix) {
  if (!tensor.starts_with(prefix)) return {tensor, ""};
  const std::string rest = tensor.substr(prefix.size());
  for (const char* kind : {".lora_A.weight", ".lora_B.weight", ".lora_embedding_A",
                           ".lora_embedding_B", ".base_layer.weight", ".weight"})
    if (rest.ends_with(kind))
      return {rest.substr(0, rest.size() - std::string_view(kind).size()), kind};
  return {rest, ""};
}

}  // namespace

torch::Tensor low_rank_term(const torch::Tensor& a, const torch::Tensor& b, double scale) {
  return b.matmul(a).mul_(scale);
}

struct AdapterRules::Choice {
  Modules targets, excluded;
  std::vector<text::Regex> saved;
  bool said = false, all_linear = false;
  std::vector<std::int64_t> layers;
  std::vector<std::string> holders;
  std::vector<Pattern> ranks, alphas;
};

AdapterRules::AdapterRules(const core::Json& config, const std::string& origin)
    : choice_(std::make_unique<Choice>()) {
  if (!config.is_object()) fail(Code::bad_config, "{}: not an object of keys", origin);
  const ConfigKeys keys(config, origin);
  expect_no_other_maths(config, keys);
  const auto positive = [&](const char* key, double value) {
    if (!(value >= 1) || value > static_cast<double>(kMostRank) || value != std::floor(value))
      keys.unsupported(key, fmt::format("{}", value));
    return static_cast<std::int64_t>(value);
  };
  rank_ = positive("r", keys.number("r", 8));
  alpha_ = keys.number("lora_alpha", 8);
  root_ = keys.truth("use_rslora", false);
  base_ = keys.text("base_model_name_or_path", "");
  choice_->said = keys.has("target_modules");
  choice_->all_linear = choice_->said && config["target_modules"] == "all-linear";
  if (!choice_->all_linear) choice_->targets = modules_of(config, "target_modules", keys);
  choice_->excluded = modules_of(config, "exclude_modules", keys);
  for (const auto& module : keys.texts("modules_to_save"))
    choice_->saved.push_back(ending(module, "modules_to_save", origin));
  choice_->layers = layers_of(config, keys);
  if (keys.has("layers_pattern"))
    choice_->holders = config["layers_pattern"].is_string()
                           ? std::vector{config["layers_pattern"].get<std::string>()}
                           : keys.texts("layers_pattern");
  std::erase(choice_->holders, "");
  choice_->ranks = patterns_of(config, "rank_pattern", keys);
  for (const auto& pattern : choice_->ranks) positive("rank_pattern", pattern.value);
  choice_->alphas = patterns_of(config, "alpha_pattern", keys);
}

AdapterRules::~AdapterRules() = default;
AdapterRules::AdapterRules(AdapterRules&&) noexcept = default;

bool AdapterRules::says_targets() const { return choice_->said; }

bool AdapterRules::targets(const std::string& module, bool linear) const {
  const auto& choice = *choice_;
  if (choice.excluded.has(module)) return false;
  for (const auto& saved : choice.saved)
    if (matches(saved, module)) return false;
  if (choice.all_linear) return linear;
  if (!choice.targets.has(module)) return false;
  if (choice.layers.empty() || choice.targets.whole) return true;
  const auto layer = layer_of(module, choice.holders);
  return std::find(choice.layers.begin(), choice.layers.end(), layer) != choice.layers.end();
}

std::int64_t AdapterRules::rank(const std::string& module) const {
  return static_cast<std::int64_t>(value_of(choice_->ranks, module, static_cast<double>(rank_)));
}

double AdapterRules::scale(const std::string& module) const {
  const auto r = static_cast<double>(rank(module));
  return value_of(choice_->alphas, module, alpha_) / (root_ ? std::sqrt(r) : r);
}

Adapter::Adapter(const std::string& folder)
    : folder_(folder),
      rules_(config_of(folder), folder + "/" + kAdapterConfigFile),
      file_(folder + "/" + kAdapterWeightsFile),
      prefix_(kBase) {
  file_.verify();
}

Adapter::Adapter(const core::Json& rules, const std::string& file, std::string prefix)
    : folder_(file.substr(0, file.rfind('/'))),
      rules_(rules, file),
      file_(file),
      prefix_(std::move(prefix)),
      alone_(false) {
  file_.verify();
}

std::vector<std::vector<Adapter::Change>> Adapter::changes(const Config& config,
                                                           const StoredWeights& weights) const {
  const auto places = adapted_matrices(config, weights);
  const bool tied = config.options.vocabulary.tied;
  const auto refused = [&](const std::string& tensor, const std::string& why) {
    fail(Code::bad_data, "{}: tensor {}: {}", file_.name(), tensor, why);
  };
  std::map<std::string, Change> changed;  // by module
  for (const auto& [tensor, entry] : file_.entries()) {
    if (!alone_ && !tensor.starts_with(prefix_)) continue;
    const auto [module, kind] = named(tensor, prefix_);
    const auto found = places.find(module);
    if (found == places.end() || kind.empty())
      refused(tensor, tied && ends_with_module(module, "lm_head")
                          ? "the model's head is its embedding, which has no term for this tensor"
                          : "matches no matrix of the model; is the adapter for another model?");
    const auto& place = found->second;
    if (place.embedding && tied)
      refused(tensor, "the embedding is also the model's head; merge the adapter in peft");
    if (!c10::isFloatingType(entry.dtype)) refused(tensor, "is not floating point");
    auto& change = changed
                       .emplace(module, Change{place.piece, "", "", "", place.embedding,
                                               rules_.scale(module) * weights.factor(place.weight),
                                               weights.factor(place.weight)})
                       .first->second;
    const auto rank = rules_.rank(module);
    auto expected = place.piece.shape_there(place.shape);
    if (kind == ".lora_A.weight" || kind == ".lora_B.weight") {
      if (place.embedding || place.shape.size() != 2) refused(tensor, "matches no matrix");
      const bool first = kind == ".lora_A.weight";
      (first ? change.a : change.b) = tensor;
      expected = first ? std::vector{rank, place.shape[1]} : std::vector{place.shape[0], rank};
    } else if (kind.starts_with(".lora_embedding")) {
      if (!place.embedding || place.piece.layout != Layout::as_is)
        refused(tensor, "matches no embedding that an adapter supports");
      const bool first = kind == ".lora_embedding_A";
      (first ? change.a : change.b) = tensor;
      expected = first ? std::vector{rank, place.shape[0]} : std::vector{place.shape[1], rank};
    } else {
      change.whole = tensor;
    }
    if (entry.shape != expected)
      refused(tensor,
              fmt::format("has shape {}, but the model and {} require {}", shown(entry.shape),
                          alone_ ? kAdapterConfigFile : "the run", shown(expected)));
  }
  std::vector<std::vector<Change>> all(weights.size());
  for (const auto& [module, place] : places) {
    const auto found = changed.find(module);
    const bool has =
        found != changed.end() && !(found->second.a.empty() && found->second.b.empty());
    const bool chosen = rules_.targets(module, place.linear);
    if (has && (found->second.a.empty() || found->second.b.empty()))
      fail(Code::bad_data, "{}: {} has only one of lora_A and lora_B", file_.name(), module);
    if (rules_.says_targets() && place.shape.size() == 2 && chosen != has)
      fail(Code::bad_data, "{}: {} lora_A and lora_B of {}, which \"target_modules\" {}",
           file_.name(), has ? "has" : "has no", module, has ? "does not choose" : "chooses");
    if (found != changed.end()) all[place.weight].push_back(found->second);
  }
  return all;
}

torch::Tensor Adapter::read(const std::string& tensor, const FaultFound& found) const {
  auto values = file_.read(tensor).to(torch::kFloat32);
  if (!torch::isfinite(values).all().item<bool>())
    found(fmt::format("{}: tensor {} has a value that is not finite", file_.name(), tensor));
  return values;
}

void Adapter::apply(const std::vector<Change>& changes, const torch::Tensor& weight,
                    const FaultFound& found) const {
  const torch::NoGradGuard no_grad;
  for (const auto& change : changes) {
    const auto& piece = change.piece;
    const auto rows = weight.narrow(0, piece.begin, piece.rows);
    if (!change.whole.empty()) rows.copy_(piece.here(read(change.whole, found)) * change.factor);
    if (change.a.empty()) continue;
    auto term = low_rank_term(read(change.a, found), read(change.b, found), change.scale);
    if (change.embedding) term = term.t();
    // Both are (out, in); only heads may have another order.
    rows.add_(piece.layout == Layout::by_head ? piece.here(term) : term);
  }
}

void save_adapter(const std::string& folder, const AdapterFacts& facts,
                  const std::vector<AdapterTerm>& terms) {
  core::make_folder(folder);
  const core::OrderedJson config = {{"peft_type", "LORA"},
                                    {"task_type", "CAUSAL_LM"},
                                    {"base_model_name_or_path", facts.base},
                                    {"r", facts.rank},
                                    {"lora_alpha", facts.alpha},
                                    {"lora_dropout", 0.0},
                                    {"target_modules", facts.targets},
                                    {"fan_in_fan_out", facts.transposed},
                                    {"bias", "none"},
                                    {"use_rslora", false},
                                    {"modules_to_save", nullptr},
                                    {"init_lora_weights", true},
                                    {"inference_mode", true}};
  core::write_file(folder + "/" + kAdapterConfigFile, core::dump_pretty(config) + "\n");
  NamedTensors tensors;
  for (const auto& term : terms) {
    const std::string name = std::string(kBase) + term.module;
    tensors.emplace_back(name + ".lora_A.weight", term.a.detach());
    tensors.emplace_back(name + ".lora_B.weight", term.b.detach());
  }
  core::Output weights(folder + "/" + kAdapterWeightsFile);
  write_safetensors(weights, tensors);
  weights.commit();
}

void adapter_field(core::FieldList& f, std::string& adapter) {
  f("adapter", adapter, "folder of a LoRA adapter, merged into the weights while they are loaded");
}

std::string adapter_base(const std::string& folder) {
  try {
    const auto config = core::read_json(folder + "/" + kAdapterConfigFile, kConfigBytes);
    return config.is_object() ? config.value("base_model_name_or_path", "") : "";
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace model
