#include "model/gpt2.h"

#include <array>
#include <string_view>

#include "core/error.h"

namespace model {
namespace {

using core::Code;
using core::fail;

constexpr std::string_view kBodyPrefix = "transformer.";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

struct ActivationName {
  const char *ours, *theirs;
};
constexpr std::array kActivations = {
    ActivationName{"gelu", "gelu_new"}, ActivationName{"gelu", "gelu_pytorch_tanh"},
    ActivationName{"gelu-exact", "gelu"}, ActivationName{"relu", "relu"}};

/// transformers' value, or its default where the key is absent or null.
template <class T>
T value_or(const core::Json& config, const char* key, T otherwise, const std::string& origin) {
  if (!config.contains(key) || config[key].is_null()) return otherwise;
  try {
    return core::get<T>(config, key, origin);
  } catch (const core::Error& error) {
    fail(Code::bad_config, "{}", error.what());
  }
}

std::int64_t required(const core::Json& config, const char* key, const std::string& origin) {
  if (!config.contains(key)) fail(Code::bad_config, "{}: no \"{}\" in it", origin, key);
  return value_or<std::int64_t>(config, key, 0, origin);
}

void expect(const core::Json& config, const char* key, bool otherwise, bool expected,
            const std::string& origin) {
  if (value_or(config, key, otherwise, origin) != expected)
    fail(Code::bad_config, "{}: \"{}\": {} is not supported", origin, key, !expected);
}

}  // namespace

bool is_gpt2_shaped(const nn::ModelOptions& options) {
  const auto& transformer = options.transformer;
  return options.arch == "transformer" && transformer.positions == "learned" &&
         transformer.norm == "pre" && transformer.final_norm && transformer.bias &&
         options.vocabulary.cutoffs.empty() && !options.vocabulary.scale_embedding;
}

core::OrderedJson gpt2_config(const nn::ModelOptions& options, std::int64_t vocabulary,
                              std::int64_t end_of_document) {
  const auto& shape = options.shape;
  core::OrderedJson config;
  config["model_type"] = "gpt2";
  config["architectures"] = {"GPT2LMHeadModel"};
  config["vocab_size"] = vocabulary;
  config["n_positions"] = options.transformer.context;
  config["n_embd"] = shape.d_model;
  config["n_layer"] = shape.layers;
  config["n_head"] = shape.heads;
  config["n_inner"] = shape.ffn_width();
  for (const auto& activation : kActivations) {
    if (options.transformer.activation != activation.ours) continue;
    config["activation_function"] = activation.theirs;
    break;
  }
  config["layer_norm_epsilon"] = options.transformer.norm_epsilon;
  config["resid_pdrop"] = shape.dropout;
  config["embd_pdrop"] = shape.dropout;
  config["attn_pdrop"] = shape.attention_dropout;
  config["tie_word_embeddings"] = options.vocabulary.tied;
  const core::OrderedJson id =
      end_of_document < 0 ? core::OrderedJson(nullptr) : core::OrderedJson(end_of_document);
  config["bos_token_id"] = id;
  config["eos_token_id"] = id;
  return config;
}

nn::ModelOptions options_of_gpt2(const core::Json& config, const std::string& origin,
                                 std::int64_t* vocabulary) {
  nn::ModelOptions options;
  auto& shape = options.shape;
  options.arch = "transformer";
  options.vocabulary.scale_embedding = false;
  *vocabulary = required(config, "vocab_size", origin);
  options.transformer.context = required(config, "n_positions", origin);
  shape.d_model = required(config, "n_embd", origin);
  shape.layers = required(config, "n_layer", origin);
  shape.heads = required(config, "n_head", origin);
  const auto inner = value_or<std::int64_t>(config, "n_inner", 0, origin);
  shape.d_ff = inner == 4 * shape.d_model ? 0 : inner;
  options.transformer.norm_epsilon = value_or(config, "layer_norm_epsilon", 1e-5, origin);
  shape.dropout = value_or(config, "resid_pdrop", .1, origin);
  shape.attention_dropout = value_or(config, "attn_pdrop", .1, origin);
  options.vocabulary.tied = value_or(config, "tie_word_embeddings", true, origin);
  options.transformer.activation.clear();
  const auto theirs = value_or<std::string>(config, "activation_function", "gelu_new", origin);
  for (const auto& activation : kActivations)
    if (theirs == activation.theirs) options.transformer.activation = activation.ours;
  if (options.transformer.activation.empty())
    fail(Code::bad_config, "{}: \"activation_function\": \"{}\" is not supported", origin, theirs);
  expect(config, "scale_attn_weights", true, true, origin);
  expect(config, "scale_attn_by_inverse_layer_idx", false, false, origin);
  expect(config, "add_cross_attention", false, false, origin);
  return options;
}

bool is_transposed_in_gpt2(const std::string& name) {
  return ends_with(name, ".c_attn.weight") || ends_with(name, ".c_proj.weight") ||
         ends_with(name, ".c_fc.weight");
}

std::string gpt2_name(const std::string& weight, bool bare) {
  if (!bare || weight.rfind(kBodyPrefix, 0) != 0) return weight;
  return weight.substr(kBodyPrefix.size());
}

bool is_gpt2_buffer(const std::string& name) {
  return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
}

}  // namespace model
