#include "model/model_config.h"

#include "nn/base/memory_rule.h"

namespace model {
namespace {

constexpr const char* kOwn = "tessera";
constexpr const char* kJointTemperature = "joint_temperature";
constexpr const char* kFamily = "family";
constexpr std::int64_t kConfigVersion = 1;
constexpr double kMostTypes = 4e9;
/// Fields that only training reads.
constexpr std::array<std::string_view, 6> kTrainingOnly = {"dropout", "attention_dropout",
    "activation_dropout", "head_dropout", "adaptive_softmax_dropout", "init"};

/// Like core::get, but errors are Error{bad_config}.
template <class T> T get(const core::Json& object, const char* key, const std::string& origin) {
  try {
    return core::get<T>(object, key, origin);
  } catch (const core::Error& error) { core::bad_config("{}", error.what()); }
}

/// Impossible numbers would otherwise only show as a failed allocation.
void expect_within_bounds(const core::FieldList& fields, const std::string& origin) {
  try {
    core::expect_within_bounds(fields);
  } catch (const core::Error& error) { core::bad_config("{}: {}", origin, error.what()); }
}

nn::ModelOptions parse_options(const core::Json& json, const std::string& origin) {
  nn::ModelOptions options;
  core::fields_from_json(core::list_fields(options), json, origin);
  for (const char* key : {"arch", "layers", "d_model", "heads"})
    if (!json.contains(key)) core::bad_config("{}: has no \"{}\"", origin, key);
  return options;
}

TrainingFacts parse_facts(const core::Json& own, const std::string& origin) {
  TrainingFacts facts;
  facts.all = own;
  for (const char* key : {"version", "model", "vocabulary_size", "tokenizer_fingerprint"})
    facts.all.erase(key);
  if (own.contains("memory")) facts.memory = get<std::string>(own, "memory", origin);
  if (own.contains("memory_temperature"))
    facts.memory_temperature = get<double>(own, "memory_temperature", origin);
  double joint_temperature = 1;
  if (own.contains(kJointTemperature))
    joint_temperature = get<double>(own, kJointTemperature, origin);
  if (own.contains("segment")) facts.segment = get<std::int64_t>(own, "segment", origin);
  try {
    facts.memory = nn::MemoryRule::parse(facts.memory).name();
  } catch (const core::Error& error) {
    core::bad_config("{}: \"memory\": {}", origin, error.what());
  }
  core::FieldList known;
  known("segment", facts.segment, "0: not known").between(0, 16e6);
  known("memory_temperature", facts.memory_temperature, "").between(kLeastTemperature, 1e6);
  known(kJointTemperature, joint_temperature, "").between(kLeastTemperature, 1e6);
  expect_within_bounds(known, origin);
  facts.tokenizer_fingerprint = get<std::string>(own, "tokenizer_fingerprint", origin);
  return facts;
}

/// Checks that "tessera" describes the same model as the keys that transformers reads.
void expect_same(const Config& own, const core::Json& json, const std::string& origin) {
  std::int64_t vocabulary = 0;
  auto theirs = family_options(*own.family, json, origin, &vocabulary);
  theirs.shape.dropout = own.options.shape.dropout;
  theirs.shape.attention_dropout = own.options.shape.attention_dropout;
  const auto a = family_config(*own.family, own.options, own.vocabulary, -1),
             b = family_config(*own.family, theirs, vocabulary, -1);
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || b[key] != value)
      core::bad_config("{}: \"{}\" is {}, but \"{}\" says {}", origin, key,
          core::dump(b.value(key, core::OrderedJson())), kOwn, core::dump(value));
  }
}

// Refuses weights that are not plain floating-point numbers: codes, scales, packed integers.
void refuse_quantized(const core::Json& json, const std::string& origin) {
  // The key of MLX, the old key of compressed-tensors, and the common key.
  for (const char* key : {"quantization", "compression_config", "quantization_config"}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_object() || found->empty()) continue;
    std::string method = std::string_view(key) == "quantization" ? "mlx" : "";
    if (const auto said = found->find("quant_method"); said != found->end() && said->is_string())
      method = said->get<std::string>();
    else if (found->contains("load_in_4bit") || found->contains("load_in_8bit"))
      method = "bitsandbytes";
    else if (method.empty()) method = "method not named";
    const char* const way =
        method == "gptq" || method == "awq" || method == "mlx"
            ? "use the model without quantization"
        : method == "bitsandbytes"
            ? "use the model without quantization, or dequantize it with transformers: "
              "from_pretrained(MODEL).dequantize().save_pretrained(DIR)"
            : "use the model without quantization, or dequantize it with transformers: load it "
              "with dequantize=True in the method's configuration, then save_pretrained(DIR)";
    core::bad_config(
        "{}: \"{}\": quantized weights ({}) are not supported; {}", origin, key, method, way);
  }
}

}  // namespace

core::Json text_config(const core::Json& json) {
  if (!json.is_object() || !json.contains("text_config") || !json["text_config"].is_object())
    return nullptr;
  // Values that the released files leave to transformers' defaults.
  const std::map<core::Json, core::Json> usual = {
      {"gemma3", {{"model_type", "gemma3_text"}, {"vocab_size", 262208}, {"hidden_size", 2304},
                     {"intermediate_size", 9216}, {"num_hidden_layers", 26},
                     {"num_attention_heads", 8}, {"num_key_value_heads", 4}}},
      {"qwen3_5", {{"model_type", "qwen3_5_text"}, {"vocab_size", 248320}, {"hidden_size", 4096},
                      {"intermediate_size", 12288}, {"num_hidden_layers", 32},
                      {"num_attention_heads", 16}}}};
  const auto known = usual.find(json.value("model_type", core::Json()));
  if (known == usual.end()) return nullptr;
  auto text = known->second;
  for (const auto& [key, value] : json["text_config"].items())
    if (!value.is_null()) text[key] = value;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "dtype", "torch_dtype",
           "quantization_config", "tie_word_embeddings"})
    if (json.contains(key) && !text.contains(key)) text[key] = json[key];
  return text;
}

Config parse_config(const core::Json& whole, const std::string& origin) {
  if (!whole.is_object()) core::bad_config("{}: not a JSON object", origin);
  const auto inner = text_config(whole);
  const core::Json& json = inner.is_null() ? whole : inner;
  refuse_quantized(json, origin);
  Config config;
  config.part = !inner.is_null();
  const auto type = json.contains("model_type") ? get<std::string>(json, "model_type", origin) : "";
  if (!type.empty()) config.family = &family_named(type, origin);
  if (json.contains(kOwn)) {
    const core::Json& own = json[kOwn];
    const auto version = get<std::int64_t>(own, "version", origin);
    if (version != kConfigVersion)
      core::bad_config("{}: model version {} is not supported; this program reads version {}",
          origin, version, kConfigVersion);
    config.options = parse_options(get<core::Json>(own, "model", origin), origin);
    config.vocabulary = get<std::int64_t>(own, "vocabulary_size", origin);
    config.facts = parse_facts(own, origin);
    if (config.family != nullptr) {
      if (const auto other = unlike(*config.family, config.options); !other.empty())
        core::bad_config("{}: \"model_type\" is {}, but in \"{}\" {}", origin, type, kOwn, other);
      expect_same(config, json, origin);
    }
  } else if (config.family != nullptr) {
    config.options = family_options(*config.family, json, origin, &config.vocabulary);
    config.ignored = ignored_keys(config.family->row, json);
    if (config.family->factors != nullptr)
      config.factors = config.family->factors(ConfigKeys(json, origin));
  } else {
    core::bad_config(
        "{}: not a model's config.json: it has neither \"{}\" nor \"model_type\"", origin, kOwn);
  }
  core::FieldList known = core::list_fields(config.options);
  known("vocabulary-size", config.vocabulary, "").between(0, kMostTypes);
  expect_within_bounds(known, origin);
  // train writes the default of --context for rotary positions, and may train on longer segments.
  // Other architectures have no positions.
  if (config.family != nullptr && config.options.arch == "transformer")
    config.facts.positions = std::max(config.options.transformer.context, config.facts.segment);
  return config;
}

const Family* written_family(const nn::ModelOptions& options, const core::OrderedJson& facts) {
  return family_of(options, facts.is_object() ? facts.value(kFamily, "") : "");
}

double test_temperature(const TrainingFacts& facts) {
  return facts.all.value(kJointTemperature, facts.memory_temperature);
}

core::OrderedJson make_config(const nn::ModelOptions& options, std::int64_t vocabulary,
    const core::OrderedJson& facts, const std::string& tokenizer_fingerprint,
    std::int64_t end_of_document) {
  core::OrderedJson config = core::OrderedJson::object();
  if (const Family* const family = written_family(options, facts))
    config = family_config(*family, options, vocabulary, end_of_document);
  core::OrderedJson own{{"version", kConfigVersion}, {"model", core::to_json(options)},
      {"vocabulary_size", vocabulary}, {"tokenizer_fingerprint", tokenizer_fingerprint}};
  for (const auto& [key, value] : facts.items()) {
    if (own.contains(key)) core::bug("a fact of training is named \"{}\"", key);
    own[key] = value;
  }
  config[kOwn] = own;
  return config;
}

core::Digest options_digest(const nn::ModelOptions& options, std::int64_t vocabulary) {
  nn::ModelOptions normal = options;
  if (normal.shape.d_ff == 4 * normal.shape.d_model) normal.shape.d_ff = 0;
  const auto defaults = core::to_json(nn::ModelOptions());
  core::Json counted = {{"vocabulary_size", vocabulary}, {"arch", options.arch}};
  const auto all = core::to_json(normal);
  for (const auto& [key, value] : all.items()) {
    const bool training_only = std::ranges::count(kTrainingOnly, key) > 0;
    const bool usual = defaults.contains(key) && value == defaults[key];
    if (!training_only && !usual) counted[key] = value;
  }
  return core::hash128(core::dump(counted));
}

}  // namespace model
