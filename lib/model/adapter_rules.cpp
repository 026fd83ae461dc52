#include "model/adapter_rules.h"

#include <cctype>
#include <charconv>

#include "model/families/config_keys.h"
#include "text/tokenizer/regex.h"

namespace model {
namespace {

constexpr std::int64_t kMostRank = std::int64_t{1} << 24;
constexpr int kMostRegexes = 1000;
// Steps of all matches of an adapter's regular expressions: seconds.
constexpr std::int64_t kMostSteps = 100'000'000;
// Modules that peft ties to each other.
constexpr std::array kTiedNames = {"embed_tokens", "lm_head"};

// Keys that do not change the function of a trained adapter, or that the code below reads.
constexpr std::array kKnown = {"peft_type", "task_type", "auto_mapping", "peft_version", "revision",
    "inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout",
    "fan_in_fan_out", "bias", "use_rslora", "modules_to_save", "init_lora_weights", "rank_pattern",
    "alpha_pattern", "layers_to_transform", "layers_pattern", "megatron_core", "qalora_group_size",
    "runtime_config", "ensure_weight_tying", "eva_config", "base_model_name_or_path"};

bool is_set(const core::Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_number() || !value.empty();
}

// Puts the place before the message of an Error.
template <class Work> auto located(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const core::Error& error) { core::bad_config("{}: {}", where, error.what()); }
}

// Compiles the regular expressions of a configuration and counts them and their steps.
class Regexes {
 public:
  explicit Regexes(std::string origin) : origin_(std::move(origin)) {}

  text::PythonRegex compile(const char* key, const std::string& pattern,
      text::PythonRegex::Range range = text::PythonRegex::Range::start) {
    if (++count_ > kMostRegexes)
      core::bad_config("{}: \"{}\": more than {} regular expressions are not supported", origin_,
          key, kMostRegexes);
    return located(
        fmt::format("{}: \"{}\"", origin_, key), [&] { return text::PythonRegex(pattern, range); });
  }
  std::optional<std::string_view> find(const text::PythonRegex& regex, std::string_view module) {
    return located(origin_, [&] { return regex.find(module, steps_); });
  }

 private:
  std::string origin_;
  int count_ = 0;
  std::int64_t steps_ = kMostSteps;
};

// A key of rank_pattern or alpha_pattern, for peft the regular expression (.*\.)?(KEY)$, and its
// value. Names, which files list by the thousand, are compared without a regular expression.
struct Pattern {
  static constexpr char kAny = '\0';
  std::string name;                        // kAny: any character
  std::optional<text::PythonRegex> regex;  // without value: compare with `name`
  double value;
};

// Returns the characters that a key consists of; nullopt if it needs a regular expression.
std::optional<std::string> plain_name(const std::string& key) {
  constexpr std::string_view kSpecial = "^$*+?{}[]|()";
  std::string name;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool escaped = key[i] == '\\' && i + 1 < key.size() &&
                         std::ispunct(static_cast<unsigned char>(key[i + 1])) != 0;
    if (!escaped && (key[i] == '\\' || kSpecial.find(key[i]) != kSpecial.npos)) return std::nullopt;
    name += escaped ? key[++i] : key[i] == '.' ? Pattern::kAny : key[i];
  }
  return name;
}

bool ends_with_name(std::string_view module, const std::string& name) {
  if (name.size() > module.size()) return false;
  const auto begin = module.size() - name.size();
  if (begin > 0 && module[begin - 1] != '.') return false;
  for (std::size_t i = name.size(); i-- > 0;)
    if (name[i] != Pattern::kAny && name[i] != module[begin + i]) return false;
  return true;
}

std::vector<Pattern> patterns_of(const core::Json& config, std::string_view json, const char* key,
    const ConfigKeys& keys, Regexes& regexes) {
  std::vector<Pattern> patterns;
  if (!keys.has(key)) return patterns;
  const auto& object = config[key];
  if (!object.is_object()) keys.unsupported(key, "a value that is not an object");
  for (const auto& pattern : core::ordered_keys(json, key)) {
    const auto& value = object[pattern];
    if (!value.is_number()) keys.unsupported(key, core::dump(value));
    auto name = plain_name(pattern);
    patterns.push_back({name.value_or(""), {}, value.get<double>()});
    if (!name) patterns.back().regex = regexes.compile(key, R"((.*\.)?()" + pattern + ")$");
  }
  return patterns;
}

// Selects modules: a list holds ends of names, a text is a regular expression for whole names.
struct Modules {
  std::unordered_set<std::string> ends;
  std::optional<text::PythonRegex> whole;

  bool lists(const std::string& module) const { return ends.count(module) > 0; }
  bool has(const std::string& module, Regexes& regexes) const {
    if (whole) return regexes.find(*whole, module).has_value();
    for (std::size_t begin = 0; begin < module.size(); begin = module.find('.', begin) + 1) {
      if (lists(module.substr(begin))) return true;
      if (module.find('.', begin) == module.npos) break;
    }
    return false;
  }
};

Modules modules_of(
    const core::Json& config, const char* key, const ConfigKeys& keys, Regexes& regexes) {
  Modules modules;
  if (keys.has(key) && config[key].is_string()) {
    modules.whole =
        regexes.compile(key, config[key].get<std::string>(), text::PythonRegex::Range::whole);
  } else {
    for (auto& name : keys.texts(key)) modules.ends.insert(std::move(name));
  }
  return modules;
}

// Returns an element or a list of texts as a list.
std::vector<std::string> one_or_more(
    const core::Json& config, const char* key, const ConfigKeys& keys) {
  if (keys.has(key) && config[key].is_string()) return {config[key].get<std::string>()};
  return keys.texts(key);
}

std::unordered_set<std::int64_t> layers_of(const core::Json& config, const ConfigKeys& keys) {
  constexpr const char* kKey = "layers_to_transform";
  if (keys.has(kKey) && !config[kKey].is_array()) return {keys.whole(kKey, 0)};
  const auto layers = keys.wholes(kKey);
  return {layers.begin(), layers.end()};
}

bool is_all_linear(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text == "all-linear";
}

bool is_tied_name(const std::string& module) {
  return std::ranges::count(kTiedNames, module.substr(module.rfind('.') + 1)) > 0;
}

void expect_no_other_maths(const core::Json& config, const ConfigKeys& keys) {
  const std::string type = keys.text("peft_type", "LORA");
  if (type != "LORA")
    core::bad_config("{}: an adapter of the kind {}; only LoRA is supported", keys.origin(), type);
  if (keys.text("bias", "none") != "none")
    keys.unsupported("bias", '"' + keys.text("bias", "none") + '"');
  if (keys.has("init_lora_weights") && config["init_lora_weights"].is_string()) {
    // Other initialisations subtract their first term from the model's own matrices.
    const auto first = config["init_lora_weights"].get<std::string>();
    if (first != "gaussian" && first != "eva" && first != "orthogonal")
      core::bad_config(
          "{}: \"init_lora_weights\": \"{}\" is not supported, since it changes the model's own "
          "matrices; save the adapter as plain LoRA, or merge it in peft",
          keys.origin(), first);
  }
  for (const auto& [key, value] : config.items())
    if (is_set(value) && std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end())
      keys.unsupported(key.c_str(), core::dump(value).substr(0, 60));
}

}  // namespace

struct AdapterRules::Choice {
  explicit Choice(const std::string& origin) : regexes(origin) {}

  Regexes regexes;
  Modules targets, excluded;
  std::vector<std::string> saved;
  std::vector<text::PythonRegex> at_saved;  // match the modules of `saved` and their parts
  bool said = false, all_linear = false;
  bool ties_terms = false, ties_saved = false;
  std::unordered_set<std::int64_t> layers;
  std::vector<text::PythonRegex> layer_numbers;
  std::vector<Pattern> ranks, alphas;

  double value_of(
      const std::vector<Pattern>& patterns, const std::string& module, double otherwise) {
    for (const auto& pattern : patterns)
      if (pattern.regex ? regexes.find(*pattern.regex, module).has_value()
                        : ends_with_name(module, pattern.name))
        return pattern.value;
    return otherwise;
  }

  // Returns whether layers_to_transform has the module's layer.
  bool has_layer(const std::string& module) {
    for (const auto& regex : layer_numbers) {
      const auto digits = regexes.find(regex, module);
      if (!digits) continue;
      std::int64_t layer = -1;
      std::from_chars(digits->data(), digits->data() + digits->size(), layer);
      return layers.count(layer) > 0;
    }
    return false;
  }
};

AdapterRules::AdapterRules(std::string_view json, const std::string& origin)
    : choice_(std::make_unique<Choice>(origin)) {
  const auto config = core::parse_json(json, origin);
  if (!config.is_object()) core::bad_config("{}: not an object of keys", origin);
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
  auto& choice = *choice_;
  choice.said = keys.has("target_modules");
  const bool pattern = choice.said && config["target_modules"].is_string();
  choice.all_linear = pattern && is_all_linear(config["target_modules"].get<std::string>());
  if (!choice.all_linear)
    choice.targets = modules_of(config, "target_modules", keys, choice.regexes);
  choice.excluded = modules_of(config, "exclude_modules", keys, choice.regexes);
  choice.saved = keys.texts("modules_to_save");
  for (const auto& module : choice.saved)
    choice.at_saved.push_back(
        choice.regexes.compile("modules_to_save", R"((^|.*\.))" + module + R"(($|\..*))"));
  for (const char* key : {"layers_to_transform", "layers_pattern"})
    if (pattern && keys.has(key))
      keys.unsupported(key, "a value beside \"target_modules\" that is no list");
  choice.layers = layers_of(config, keys);
  if (keys.has("layers_pattern") && !keys.has("layers_to_transform"))
    keys.unsupported("layers_pattern", "a value without \"layers_to_transform\"");
  const auto holders = one_or_more(config, "layers_pattern", keys);
  for (const auto& holder : holders)
    if (!holder.empty() || config["layers_pattern"].is_array())
      choice.layer_numbers.push_back(choice.regexes.compile(
          "layers_pattern", R"((?:^|.*?\.))" + holder + R"(\.(?P<idx>\d+)\.)"));
  if (choice.layer_numbers.empty())
    choice.layer_numbers.push_back(
        choice.regexes.compile("layers_to_transform", R"(.*?\.[^.]*\.(?P<idx>\d+)\.)"));
  choice.ranks = patterns_of(config, json, "rank_pattern", keys, choice.regexes);
  for (const auto& each : choice.ranks) positive("rank_pattern", each.value);
  choice.alphas = patterns_of(config, json, "alpha_pattern", keys, choice.regexes);
  if (!keys.truth("ensure_weight_tying", false)) return;
  const auto any_tied = [](const auto& names) { return std::ranges::any_of(names, is_tied_name); };
  choice.ties_saved = any_tied(choice.saved);
  choice.ties_terms = !choice.ties_saved &&
                      (any_tied(choice.targets.ends) ||
                          (choice.targets.whole && std::ranges::any_of(kTiedNames, [&](auto name) {
                            return choice.targets.has(name, choice.regexes);
                          })));
}

AdapterRules::~AdapterRules() = default;
AdapterRules::AdapterRules(AdapterRules&&) noexcept = default;

bool AdapterRules::says_targets() const { return choice_->said; }
const std::vector<std::string>& AdapterRules::saved() const { return choice_->saved; }
bool AdapterRules::ties_terms() const { return choice_->ties_terms; }
bool AdapterRules::ties_saved() const { return choice_->ties_saved; }

bool AdapterRules::targets(const std::string& module, bool linear) const {
  auto& choice = *choice_;
  if (choice.excluded.has(module, choice.regexes)) return false;
  for (const auto& saved : choice.at_saved)
    if (choice.regexes.find(saved, module)) return false;
  if (choice.all_linear) return linear;
  if (choice.targets.lists(module)) return true;
  return choice.targets.has(module, choice.regexes) &&
         (choice.layers.empty() || choice.has_layer(module));
}

std::int64_t AdapterRules::rank(const std::string& module) const {
  return static_cast<std::int64_t>(
      choice_->value_of(choice_->ranks, module, static_cast<double>(rank_)));
}

double AdapterRules::scale(const std::string& module) const {
  const auto r = static_cast<double>(rank(module));
  return choice_->value_of(choice_->alphas, module, alpha_) / (root_ ? std::sqrt(r) : r);
}

}  // namespace model
