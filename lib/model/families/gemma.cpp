// Gemma 1 to 3. Gemma is Llama with norms times 1 + weight, GELU, and embeddings times the square
// root of the width. Gemma 2 and 3 have norms before and after each sub-layer and windows in some
// layers. Gemma 2 caps scores. Gemma 3 normalises queries and keys and has two rotary bases.

#include <cmath>

#include "model/families/gated_family.h"
#include "model/families/layer_types.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

constexpr GatedDefaults kUsual{.context = 8192,
                               .d_head = 256,
                               .tied = true,
                               .activation_key = "hidden_activation",
                               .activation = "gelu_pytorch_tanh"};

nn::ModelOptions gemma_shape(const ConfigKeys& keys, const GatedDefaults& defaults) {
  auto options = gated_options(keys, defaults);
  options.vocabulary.scale_embedding = true;
  options.transformer.norm_kind = "rms-one";
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  return options;
}

nn::ModelOptions gemma1_options(const ConfigKeys& keys) { return gemma_shape(keys, kUsual); }

void gemma1_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config, kUsual);
  config["hidden_act"] = config["hidden_activation"];
  config["attention_bias"] = options.transformer.has_bias("qkv");
}

// Reads what Gemma 2 and 3 share. `slides` returns whether layer i has a window if there are no
// layer_types.
nn::ModelOptions windowed(const ConfigKeys& keys, const GatedDefaults& defaults,
                          bool (*slides)(std::int64_t)) {
  auto options = gemma_shape(keys, defaults);
  auto& transformer = options.transformer;
  transformer.norm = "sandwich";
  const double asked = keys.number("query_pre_attn_scalar", 256);
  if (asked <= 0) keys.unsupported("query_pre_attn_scalar", "a number that is not positive");
  const auto width = nn::head_shape(options.shape, transformer).width;
  const bool usual = asked == static_cast<double>(width);
  transformer.attention_scale = usual ? 0 : 1 / std::sqrt(asked);
  transformer.attention_window =
      windows_of(keys, options.shape.layers, keys.whole("sliding_window", 4096), slides);
  keys.expect("use_bidirectional_attention", false, false);
  return options;
}

void put_windowed(const nn::ModelOptions& options, core::OrderedJson& config,
                  const GatedDefaults& defaults) {
  const auto& transformer = options.transformer;
  put_gated(options, config, defaults);
  config["attention_bias"] = transformer.has_bias("qkv");
  const double scale = transformer.attention_scale;
  const auto width = nn::head_shape(options.shape, transformer).width;
  config["query_pre_attn_scalar"] = scale > 0 ? std::llround(1 / (scale * scale)) : width;
  const auto window = widest(transformer.attention_window);
  config["sliding_window"] = window > 0 ? window : 4096;
  config["layer_types"] = layer_types(transformer.attention_window, options.shape.layers);
}

core::OrderedJson cap_or_null(double cap) {
  return cap > 0 ? core::OrderedJson(cap) : core::OrderedJson(nullptr);
}

// Reads a "softcapping" key. An absent key and a null have different meanings.
double cap_of(const ConfigKeys& keys, const char* key, double otherwise) {
  return keys.is_null(key) ? 0 : keys.number(key, otherwise);
}

nn::ModelOptions gemma2_options(const ConfigKeys& keys) {
  auto options = windowed(keys, kUsual, [](std::int64_t i) { return i % 2 == 0; });
  options.transformer.attention_softcap = cap_of(keys, "attn_logit_softcapping", 50);
  options.vocabulary.logit_softcap = cap_of(keys, "final_logit_softcapping", 30);
  return options;
}

void gemma2_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_windowed(options, config, kUsual);
  config["attn_logit_softcapping"] = cap_or_null(options.transformer.attention_softcap);
  config["final_logit_softcapping"] = cap_or_null(options.vocabulary.logit_softcap);
}

constexpr std::int64_t kGemma3Context = 131072;
constexpr GatedDefaults kGemma3{.context = kGemma3Context,
                                .d_head = 256,
                                .tied = true,
                                .activation_key = "hidden_activation",
                                .activation = "gelu_pytorch_tanh"};

nn::ModelOptions gemma3_options(const ConfigKeys& keys) {
  auto options = windowed(keys, kGemma3, [](std::int64_t i) { return i % 6 != 5; });
  auto& transformer = options.transformer;
  transformer.qk_norm = "head";
  transformer.rope = rope_of(keys, transformer.context, 1e6);
  transformer.rope.local_theta = local_theta_of(keys, 1e4);
  transformer.attention_softcap = cap_of(keys, "attn_logit_softcapping", 0);
  options.vocabulary.logit_softcap = cap_of(keys, "final_logit_softcapping", 0);
  if (keys.whole("sliding_window_pattern", 6) != 6 && !keys.has("layer_types"))
    keys.unsupported("sliding_window_pattern", "a pattern without layer_types");
  return options;
}

void gemma3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_windowed(options, config, kGemma3);
  config["attn_logit_softcapping"] = cap_or_null(options.transformer.attention_softcap);
  config["final_logit_softcapping"] = cap_or_null(options.vocabulary.logit_softcap);
}

// Describes a family with norms before and after each sub-layer.
Family sandwiched(std::string_view type, std::string_view architecture,
                  nn::ModelOptions (*options)(const ConfigKeys&),
                  void (*keys)(const nn::ModelOptions&, core::OrderedJson&)) {
  Family made = gated_family(type, architecture, options, keys);
  made.modules =
      gated_modules("model.layers.N.input_layernorm", "model.layers.N.pre_feedforward_layernorm");
  made.modules.push_back({"transformer.h.N.ln_1_out", {"model.layers.N.post_attention_layernorm"}});
  made.modules.push_back(
      {"transformer.h.N.ln_2_out", {"model.layers.N.post_feedforward_layernorm"}});
  return made;
}

}  // namespace

std::vector<const Family*> gemma_families() {
  static const Family gemma1 =
      gated_family("gemma", "GemmaForCausalLM", gemma1_options, gemma1_keys);
  static const Family gemma2 =
      sandwiched("gemma2", "Gemma2ForCausalLM", gemma2_options, gemma2_keys);
  static const Family gemma3 =
      sandwiched("gemma3_text", "Gemma3ForCausalLM", gemma3_options, gemma3_keys);
  return {&gemma1, &gemma2, &gemma3};
}

}  // namespace model
