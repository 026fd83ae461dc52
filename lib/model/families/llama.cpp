// Llama and those that differ from it in a few keys: RMSNorm, rotary positions, gated feed-forward
// networks, heads of keys and values for several of queries.

#include "model/families/gated_family.h"
#include "model/families/layer_types.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

// Qwen's: a window for the layers that "layer_types" names, else for those from a number on.
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
  config["original_max_position_embeddings"] = options.transformer.context;
  config["pad_token_id"] = nullptr;  // else an id that a small vocabulary does not have
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
  // Phi-3's matrices stand together as Tessera's do.
  static const Family phi3 = [] {
    Family made = gated_family("phi3", "Phi3ForCausalLM", phi3_options, phi3_keys);
    for (auto& names : made.modules) {
      if (names.theirs.size() == 3) names.theirs = {"model.layers.N.self_attn.qkv_proj"};
      if (names.theirs.size() == 2) names.theirs = {"model.layers.N.mlp.gate_up_proj"};
    }
    return made;
  }();
  return {&llama, &mistral, &qwen2, &qwen3, &olmo2, &phi3};
}

}  // namespace model
