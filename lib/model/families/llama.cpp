// Llama and the families that differ from it in a few keys: RMSNorm, rotary positions, gated
// feed-forward networks, grouped-query attention.

#include <algorithm>
#include <cmath>

#include "model/families/gated_family.h"
#include "model/families/layer_types.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

// Reads Qwen's windows: of the layers that "layer_types" names, or of all layers from a number on.
std::vector<std::int64_t> qwen_windows(const ConfigKeys& keys, std::int64_t layers) {
  if (!keys.truth("use_sliding_window", false) || !keys.has("sliding_window")) return {};
  const auto from = keys.whole("max_window_layers", 28);
  return windows_of(keys, layers, keys.whole("sliding_window", 0),
                    [from](std::int64_t i) { return i >= from; });
}

void put_windows(const nn::ModelOptions& options, core::OrderedJson& config) {
  const auto& windows = options.transformer.attention_window;
  const auto window = widest(windows);
  config["use_sliding_window"] = window > 0;
  config["sliding_window"] = window > 0 ? core::OrderedJson(window) : core::OrderedJson(nullptr);
  config["max_window_layers"] = window > 0 && windows.size() == 1 ? 0 : options.shape.layers;
  if (windows.size() > 1) config["layer_types"] = layer_types(windows, options.shape.layers);
}

nn::ModelOptions llama_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {});
  std::vector<std::string> kinds;
  if (keys.truth("attention_bias", false)) kinds = {"qkv", "output"};
  if (keys.truth("mlp_bias", false)) kinds.push_back("feed-forward");
  set_biases(options, kinds);
  return options;
}

void llama_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
  config["mlp_bias"] = options.transformer.has_bias("feed-forward");
}

nn::ModelOptions mistral_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.context = 131072});
  if (const auto window = keys.whole("sliding_window", 0); window > 0)
    options.transformer.attention_window = {window};
  return options;
}

// Ministral 3: Mistral with YaRN and queries that grow with their position
// (RopeOptions::query_growth).
nn::ModelOptions ministral3_options(const ConfigKeys& keys) {
  if (!keys.has("rope_parameters") && !keys.has("rope_scaling"))
    keys.unsupported("rope_parameters", "null");
  auto options = gated_options(keys, {.context = 262144, .d_head = 128, .epsilon = 1e-5});
  options.transformer.rope.query_growth = query_growth_of(keys);
  if (const auto window = keys.whole("sliding_window", 0); window > 0)
    options.transformer.attention_window = {window};
  return options;
}

void mistral_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config);
  const auto& windows = options.transformer.attention_window;
  config["sliding_window"] =
      windows.empty() ? core::OrderedJson(nullptr) : core::OrderedJson(windows[0]);
}

nn::ModelOptions qwen2_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.context = 32768});
  set_biases(options, {"qkv"});
  options.transformer.attention_window = qwen_windows(keys, options.shape.layers);
  return options;
}

void qwen2_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config);
  put_windows(options, config);
}

nn::ModelOptions qwen3_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.context = 32768, .d_head = 128});
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "head";
  options.transformer.attention_window = qwen_windows(keys, options.shape.layers);
  return options;
}

void qwen3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
  put_windows(options, config);
}

nn::ModelOptions olmo2_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.epsilon = 1e-5});
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "whole";
  options.transformer.norm = "sublayer";
  return options;
}

void olmo2_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
}

// Olmo 3: Olmo 2 with a window in three of four layers; their rotary angles are not scaled.
nn::ModelOptions olmo3_options(const ConfigKeys& keys) {
  auto options = olmo2_options(keys);
  auto& transformer = options.transformer;
  transformer.attention_window =
      windows_of(keys, options.shape.layers, keys.whole("sliding_window", 4096),
                 [](std::int64_t i) { return i % 4 != 3; });
  if (transformer.rope.scaling != "none") transformer.rope.local_theta = transformer.rope.theta;
  return options;
}

void olmo3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  auto bare = options;
  bare.transformer.rope.local_theta = 0;  // the format has no key for it
  olmo2_keys(bare, config);
  const auto window = widest(options.transformer.attention_window);
  config["sliding_window"] = window > 0 ? window : 4096;
  config["layer_types"] = layer_types(options.transformer.attention_window, options.shape.layers);
}

// SmolLM 3: some layers have no rotary positions, every fourth unless a list names them.
nn::ModelOptions smollm3_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.context = 32768, .tied = true});
  auto& rope = options.transformer.rope;
  if (!keys.has("rope_theta") && !keys.has("rope_parameters")) rope.theta = 2e6;
  std::vector<std::string> kinds;
  if (keys.truth("attention_bias", false)) kinds = {"qkv", "output"};
  if (keys.truth("mlp_bias", false)) kinds.push_back("feed-forward");
  set_biases(options, kinds);
  if (keys.truth("use_sliding_window", false) && keys.has("sliding_window"))
    options.transformer.attention_window =
        windows_of(keys, options.shape.layers, keys.whole("sliding_window", 0),
                   [](std::int64_t) { return true; });
  const auto turned = keys.wholes("no_rope_layers");
  if (turned.empty()) {
    rope.skip = keys.whole("no_rope_layer_interval", 4);
    return options;
  }
  const auto refuse = [&](const char* what) { keys.unsupported("no_rope_layers", what); };
  if (std::ssize(turned) != options.shape.layers) refuse("a different number of layers");
  const auto first = std::find(turned.begin(), turned.end(), 0);
  rope.skip = first == turned.end() ? 0 : first - turned.begin() + 1;
  for (std::int64_t i = 0; i < std::ssize(turned); ++i)
    if ((turned[static_cast<std::size_t>(i)] != 0) != (rope.skip == 0 || (i + 1) % rope.skip != 0))
      refuse("layers without a regular interval");
  return options;
}

void smollm3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  llama_keys(options, config);
  auto turned = core::OrderedJson::array();
  const auto skip = options.transformer.rope.skip;
  for (std::int64_t i = 0; i < options.shape.layers; ++i)
    turned.push_back(skip == 0 || (i + 1) % skip != 0 ? 1 : 0);
  config["no_rope_layers"] = turned;
  if (skip > 0) config["no_rope_layer_interval"] = skip;
  put_windows(options, config);
}

// Granite: Llama with four factors. Multiplying embeddings by m before the norms of the sub-layers
// equals an epsilon of 1 / m^2 and sub-layer outputs divided by m.
struct GraniteFactors {
  double embedding, residual, logits;
  explicit GraniteFactors(const ConfigKeys& keys)
      : embedding(keys.number("embedding_multiplier", 1)),
        residual(keys.number("residual_multiplier", 1)),
        logits(keys.number("logits_scaling", 1)) {
    for (const auto& [key, value] :
         {std::pair("embedding_multiplier", embedding), std::pair("logits_scaling", logits)})
      if (!(std::abs(value) > 1e-6)) keys.unsupported(key, "0");
  }
};

nn::ModelOptions granite_options(const ConfigKeys& keys) {
  auto options = llama_options(keys);
  const GraniteFactors factors(keys);
  auto& transformer = options.transformer;
  transformer.norm_epsilon /= factors.embedding * factors.embedding;
  const auto width = nn::head_shape(options.shape, transformer).width;
  const double scale = keys.number("attention_multiplier", 1);
  if (scale <= 0) keys.unsupported("attention_multiplier", "a number that is not positive");
  const bool usual = std::abs(scale * std::sqrt(static_cast<double>(width)) - 1) < 1e-12;
  transformer.attention_scale = usual ? 0 : scale;
  return options;
}

void granite_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  llama_keys(options, config);
  const auto& transformer = options.transformer;
  const auto width = static_cast<double>(nn::head_shape(options.shape, transformer).width);
  config["attention_multiplier"] =
      transformer.attention_scale > 0 ? transformer.attention_scale : 1 / std::sqrt(width);
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"})
    config[key] = 1.0;
}

std::vector<WeightFactor> granite_factors(const ConfigKeys& keys) {
  const GraniteFactors factors(keys);
  const double part = factors.residual / factors.embedding;
  return {{"transformer.h.N.attn.c_proj", part},
          {"transformer.h.N.mlp.c_proj", part},
          {"transformer.ln_f", 1 / factors.logits}};
}

nn::ModelOptions phi3_options(const ConfigKeys& keys) {
  auto options = gated_options(keys, {.context = 4096, .epsilon = 1e-5});
  if (const auto window = keys.whole("sliding_window", 0); window > 0)
    options.transformer.attention_window = {window};
  options.shape.dropout = keys.number("resid_pdrop", 0);
  return options;
}

void phi3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  mistral_keys(options, config);
  config["resid_pdrop"] = options.shape.dropout;
  const auto& rope = options.transformer.rope;
  config["original_max_position_embeddings"] =
      rope.scaling == "longrope" ? rope.trained : options.transformer.context;
  config["pad_token_id"] = nullptr;  // the default id is outside a small vocabulary
}

}  // namespace

std::vector<const Family*> llama_families() {
  static const Family llama = gated_family("llama", "LlamaForCausalLM", llama_options, llama_keys);
  static const Family mistral =
      gated_family("mistral", "MistralForCausalLM", mistral_options, mistral_keys);
  static const Family qwen2 = gated_family("qwen2", "Qwen2ForCausalLM", qwen2_options, qwen2_keys);
  static const Family qwen3 = gated_family("qwen3", "Qwen3ForCausalLM", qwen3_options, qwen3_keys);
  static const Family olmo2 = [] {
    Family made = gated_family("olmo2", "Olmo2ForCausalLM", olmo2_options, olmo2_keys);
    made.modules = gated_modules("model.layers.N.post_attention_layernorm",
                                 "model.layers.N.post_feedforward_layernorm");
    return made;
  }();
  static const Family olmo3 = [] {
    Family made = gated_family("olmo3", "Olmo3ForCausalLM", olmo3_options, olmo3_keys);
    made.modules = olmo2.modules;
    return made;
  }();
  static const Family smollm3 =
      gated_family("smollm3", "SmolLM3ForCausalLM", smollm3_options, smollm3_keys);
  static const Family granite = [] {
    Family made = gated_family("granite", "GraniteForCausalLM", granite_options, granite_keys);
    made.factors = granite_factors;
    return made;
  }();
  // Phi-3 fuses the matrices that Tessera fuses.
  static const Family phi3 = [] {
    Family made = gated_family("phi3", "Phi3ForCausalLM", phi3_options, phi3_keys);
    for (auto& names : made.modules) {
      if (names.theirs.size() == 3) names.theirs = {"model.layers.N.self_attn.qkv_proj"};
      if (names.theirs.size() == 2) names.theirs = {"model.layers.N.mlp.gate_up_proj"};
    }
    return made;
  }();
  static const Family ministral3 =
      gated_family("ministral3", "Ministral3ForCausalLM", ministral3_options, mistral_keys);
  return {&llama, &mistral, &qwen2, &qwen3, &olmo2, &phi3, &olmo3, &smollm3, &granite, &ministral3};
}

}  // namespace model
