#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "model/gpt2.h"
#include "nn/memory.h"

namespace model {
namespace {

using core::Code;
using core::fail;

constexpr const char* kOwn = "tessera";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::int64_t{1}
                                  << 28;  // of any dimension: products of two fit in 64 bits
/// What only training looks at.
constexpr std::array<std::string_view, 6> kTrainingOnly = {
    "dropout", "attention_dropout", "activation_dropout", "head_dropout", "tail_dropout", "init"};

/// core::get, but what is wrong is the configuration.
template <class T>
T get(const core::Json& object, const char* key, const std::string& origin) {
  try {
    return core::get<T>(object, key, origin);
  } catch (const core::Error& error) {
    fail(Code::bad_config, "{}", error.what());
  }
}

/// Numbers that no model has would only show as a failed allocation.
void check_ranges(nn::ModelOptions& options, const std::string& origin) {
  const auto check_integer = [&](const core::Field& field, std::int64_t value) {
    if (value < 0 || value > kLargest)
      fail(Code::bad_config, "{}: \"{}\": {} is out of range", origin, field.key(), value);
  };
  const auto fields = core::list_fields(options);
  for (const auto& field : fields.all()) {
    if (const auto* integer = std::get_if<std::int64_t*>(&field.target))
      check_integer(field, **integer);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>*>(&field.target))
      for (const auto value : **integers) check_integer(field, value);
    if (const auto* number = std::get_if<double*>(&field.target);
        number && !std::isfinite(**number))
      fail(Code::bad_config, "{}: \"{}\" is not a finite number", origin, field.key());
  }
}

nn::ModelOptions parse_options(const core::Json& json, const std::string& origin) {
  nn::ModelOptions options;
  core::fields_from_json(core::list_fields(options), json, origin);
  for (const char* key : {"arch", "layers", "d_model", "heads"})
    if (!json.contains(key)) fail(Code::bad_config, "{}: no \"{}\" in it", origin, key);
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
  if (own.contains("segment")) facts.segment = get<std::int64_t>(own, "segment", origin);
  try {
    facts.memory = nn::MemoryRule::parse(facts.memory).name();
  } catch (const core::Error& error) {
    fail(Code::bad_config, "{}: \"memory\": {}", origin, error.what());
  }
  if (!(facts.memory_temperature > 0) || !std::isfinite(facts.memory_temperature))
    fail(Code::bad_config, "{}: \"memory_temperature\": {} is no number above 0", origin,
         facts.memory_temperature);
  if (facts.segment < 0 || facts.segment > kLargest)
    fail(Code::bad_config, "{}: \"segment\": {} is out of range", origin, facts.segment);
  facts.tokenizer_fingerprint = get<std::string>(own, "tokenizer_fingerprint", origin);
  return facts;
}

/// What "tessera" says must be what transformers reads.
void expect_same(const Config& own, const core::Json& json, const std::string& origin) {
  std::int64_t vocabulary = 0;
  const auto theirs = options_of_gpt2(json, origin, &vocabulary);
  const auto a = gpt2_config(own.options, own.vocabulary, -1),
             b = gpt2_config(theirs, vocabulary, -1);
  for (const char* key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner",
                          "activation_function", "layer_norm_epsilon", "tie_word_embeddings"}) {
    if (a[key] != b[key])
      fail(Code::bad_config, "{}: \"{}\" is {}, but \"{}\" says {}", origin, key,
           core::dump(b[key]), kOwn, core::dump(a[key]));
  }
}

}  // namespace

Config parse_config(const core::Json& json, const std::string& origin) {
  if (!json.is_object()) fail(Code::bad_config, "{}: not a JSON object", origin);
  Config config;
  const auto type = json.contains("model_type") ? get<std::string>(json, "model_type", origin) : "";
  if (!type.empty() && type != "gpt2")
    fail(Code::bad_config, "{}: \"model_type\": \"{}\" is not supported; gpt2 is", origin, type);
  config.gpt2_layout = !type.empty();
  if (json.contains(kOwn)) {
    const core::Json& own = json[kOwn];
    const auto version = get<std::int64_t>(own, "version", origin);
    if (version != kVersion)
      fail(Code::bad_config, "{}: a model of version {}, this program reads {}", origin, version,
           kVersion);
    config.options = parse_options(get<core::Json>(own, "model", origin), origin);
    config.vocabulary = get<std::int64_t>(own, "vocabulary_size", origin);
    config.facts = parse_facts(own, origin);
    if (config.gpt2_layout) {
      if (!is_gpt2_shaped(config.options))
        fail(Code::bad_config, "{}: \"model_type\" is gpt2, but \"{}\" describes another shape",
             origin, kOwn);
      expect_same(config, json, origin);
    }
  } else if (config.gpt2_layout) {
    config.options = options_of_gpt2(json, origin, &config.vocabulary);
  } else {
    fail(Code::bad_config, "{}: neither \"{}\" nor \"model_type\" in it: not a model's", origin,
         kOwn);
  }
  check_ranges(config.options, origin);
  if (config.vocabulary < 0 || config.vocabulary > kLargest)
    fail(Code::bad_config, "{}: a vocabulary of {} is out of range", origin, config.vocabulary);
  return config;
}

core::OrderedJson make_config(const nn::ModelOptions& options, std::int64_t vocabulary,
                              const core::OrderedJson& facts,
                              const std::string& tokenizer_fingerprint,
                              std::int64_t end_of_document) {
  core::OrderedJson config = core::OrderedJson::object();
  if (is_gpt2_shaped(options)) config = gpt2_config(options, vocabulary, end_of_document);
  core::OrderedJson own;
  own["version"] = kVersion;
  own["model"] = core::to_json(options);
  own["vocabulary_size"] = vocabulary;
  own["tokenizer_fingerprint"] = tokenizer_fingerprint;
  for (const auto& [key, value] : facts.items()) {
    if (own.contains(key)) fail(Code::bug, "a fact of training is named \"{}\"", key);
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
    const bool training_only =
        std::find(kTrainingOnly.begin(), kTrainingOnly.end(), key) != kTrainingOnly.end();
    if (!training_only && value != defaults[key]) counted[key] = value;
  }
  return core::hash128(core::dump(counted));
}

}  // namespace model
