// Gemma 1 to 3. Gemma is Llama with norms times 1 + weight, GELU, and embeddings times the square
// root of the width. Gemma 2 and 3 have norms before and after each sub-layer and windows in some
// layers. Gemma 2 caps scores. Gemma 3 normalises queries and keys and has two rotary bases.

#include "model/families/gated_family.h"

namespace model {
namespace {

nn::ModelOptions gemma_shape(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  options.vocabulary.scale_embedding = true;
  options.transformer.norm_kind = "rms-one";
  return options;
}

// The class takes "gelu", which the first files have, for its approximation.
nn::ModelOptions gemma1_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gemma_shape(keys, row);
  auto& activation = options.transformer.activation;
  if (activation == "gelu-exact") activation = "gelu";
  return options;
}

void gemma1_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_gated(options, row, config);
  config["hidden_activation"] = config["hidden_act"];  // the key of version 4
}

// Reads a "softcapping" key. An absent key and a null have different meanings.
double cap_of(const ConfigKeys& keys, const char* key, double otherwise) {
  return keys.is_null(key) ? 0 : keys.number(key, otherwise);
}

core::OrderedJson cap_or_null(double cap) {
  return cap > 0 ? core::OrderedJson(cap) : core::OrderedJson(nullptr);
}

// Reads what Gemma 2 and 3 share.
nn::ModelOptions sandwiched_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gemma_shape(keys, row);
  auto& transformer = options.transformer;
  transformer.norm = "sandwich";
  const double asked = keys.number("query_pre_attn_scalar", 256);
  if (asked <= 0) keys.unsupported("query_pre_attn_scalar", "a number that is not positive");
  const auto width = nn::head_shape(options.shape, transformer).width;
  const bool usual = asked == static_cast<double>(width);
  transformer.attention_scale = usual ? 0 : 1 / std::sqrt(asked);
  return options;
}

void put_sandwiched(
    const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& transformer = options.transformer;
  put_gated(options, row, config);
  const double scale = transformer.attention_scale;
  const auto width = nn::head_shape(options.shape, transformer).width;
  config["query_pre_attn_scalar"] =
      scale > 0 ? std::llround(std::min(1 / (scale * scale), 1e15)) : width;
  config["final_logit_softcapping"] = cap_or_null(options.vocabulary.logit_softcap);
}

nn::ModelOptions gemma2_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = sandwiched_options(keys, row);
  options.transformer.attention_softcap = cap_of(keys, "attn_logit_softcapping", 50);
  options.vocabulary.logit_softcap = cap_of(keys, "final_logit_softcapping", 30);
  return options;
}

void gemma2_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_sandwiched(options, row, config);
  config["attn_logit_softcapping"] = cap_or_null(options.transformer.attention_softcap);
}

nn::ModelOptions gemma3_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = sandwiched_options(keys, row);
  options.transformer.qk_norm = "head";
  options.vocabulary.logit_softcap = cap_of(keys, "final_logit_softcapping", 0);
  return options;
}

// Describes a family with norms before and after each sub-layer.
Family sandwiched(std::string_view type, Family::Options options, Family::Keys keys) {
  Family made = gated_family(type, options, keys);
  made.modules =
      gated_modules("model.layers.N.input_layernorm", "model.layers.N.pre_feedforward_layernorm");
  made.modules.push_back({"transformer.h.N.ln_1_out", {"model.layers.N.post_attention_layernorm"}});
  made.modules.push_back(
      {"transformer.h.N.ln_2_out", {"model.layers.N.post_feedforward_layernorm"}});
  return made;
}

}  // namespace

std::vector<const Family*> gemma_families() {
  static const Family gemma1 = gated_family("gemma", gemma1_options, gemma1_keys);
  static const Family gemma2 = sandwiched("gemma2", gemma2_options, gemma2_keys);
  static const Family gemma3 = sandwiched("gemma3_text", gemma3_options, put_sandwiched);
  return {&gemma1, &gemma2, &gemma3};
}

}  // namespace model
