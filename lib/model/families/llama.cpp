// Llama and those that differ from it in a few keys: RMSNorm, rotary positions, gated feed-forward
// networks, heads of keys and values for several of queries.

#include <algorithm>
#include <cmath>

#include "model/families/family.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

nn::ModelOptions shape_of(const ConfigKeys& keys, double epsilon, std::int64_t d_head,
                          std::int64_t context) {
  auto options = sized(keys, "intermediate_size");
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = 0;
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", false);
  const auto kv_heads = keys.whole("num_key_value_heads", shape.heads);
  transformer.kv_heads = kv_heads == shape.heads ? 0 : kv_heads;
  const auto width = keys.whole("head_dim", d_head);
  const bool usual = shape.heads > 0 && width * shape.heads == shape.d_model;
  transformer.d_head = usual ? 0 : width;
  transformer.context = keys.whole("max_position_embeddings", context);
  transformer.positions = "rope";
  transformer.norm_kind = "rms";
  transformer.norm_epsilon = keys.number("rms_norm_eps", epsilon);
  transformer.feed_forward = "gated";
  transformer.activation = keys.activation("hidden_act", "silu");
  transformer.bias = false;
  transformer.rope = rope_of(keys, transformer.context);
  return options;
}

void shape_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  const auto& shape = options.shape;
  const auto& transformer = options.transformer;
  const auto heads = nn::head_shape(shape, transformer);
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = heads.kv_heads;
  config["head_dim"] = heads.width;
  config["intermediate_size"] = shape.ffn_width();
  config["hidden_act"] = their_activation(transformer.activation);
  config["rms_norm_eps"] = transformer.norm_epsilon;
  config["max_position_embeddings"] = transformer.context;
  config["attention_dropout"] = shape.attention_dropout;
  put_rope(transformer.rope, config);
}

void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds) {
  options.transformer.bias = !kinds.empty();
  options.transformer.bias_of = std::move(kinds);
}

// Qwen's: a window for the layers that "layer_types" names, else for those from a number on.
std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers) {
  if (!keys.truth("use_sliding_window", false) || !keys.has("sliding_window")) return {};
  const auto window = keys.whole("sliding_window", 0);
  const auto types = keys.texts("layer_types");
  std::vector<std::int64_t> windows;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(layers, 1 << 14); ++i) {
    bool sliding = i >= keys.whole("max_window_layers", 28);
    if (!types.empty()) {
      const auto& type = types[static_cast<std::size_t>(i) % types.size()];
      if (type != kSliding && type != kFull) keys.unsupported("layer_types", '"' + type + '"');
      sliding = type == kSliding;
    }
    windows.push_back(sliding ? window : 0);
  }
  const bool same =
      std::adjacent_find(windows.begin(), windows.end(), std::not_equal_to<>()) == windows.end();
  if (same && !windows.empty()) windows.resize(windows[0] == 0 ? 0 : 1);
  return windows;
}

void put_windows(const nn::ModelOptions& options, core::OrderedJson& config) {
  const auto& windows = options.transformer.attention_window;
  const auto widest = windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
  config["use_sliding_window"] = widest > 0;
  config["sliding_window"] = widest > 0 ? core::OrderedJson(widest) : core::OrderedJson(nullptr);
  config["max_window_layers"] = widest > 0 && windows.size() == 1 ? 0 : options.shape.layers;
  if (windows.size() < 2) return;
  auto types = core::OrderedJson::array();
  for (std::int64_t i = 0; i < options.shape.layers; ++i)
    types.push_back(windows[static_cast<std::size_t>(i) % windows.size()] > 0 ? kSliding : kFull);
  config["layer_types"] = types;
}

nn::ModelOptions llama_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-6, 0, 2048);
  std::vector<std::string> kinds;
  if (keys.truth("attention_bias", false)) kinds = {"qkv", "output"};
  if (keys.truth("mlp_bias", false)) kinds.push_back("feed-forward");
  set_biases(options, kinds);
  return options;
}

void llama_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  shape_keys(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
  config["mlp_bias"] = options.transformer.has_bias("feed-forward");
}

nn::ModelOptions mistral_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-6, 0, 131072);
  if (const auto window = keys.whole("sliding_window", 0); window > 0)
    options.transformer.attention_window = {window};
  return options;
}

void mistral_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  shape_keys(options, config);
  const auto& windows = options.transformer.attention_window;
  config["sliding_window"] =
      windows.empty() ? core::OrderedJson(nullptr) : core::OrderedJson(windows[0]);
}

nn::ModelOptions qwen2_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-6, 0, 32768);
  set_biases(options, {"qkv"});
  options.transformer.attention_window = windows_of(keys, options.shape.layers);
  return options;
}

void qwen2_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  shape_keys(options, config);
  put_windows(options, config);
}

nn::ModelOptions qwen3_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-6, 128, 32768);
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "head";
  options.transformer.attention_window = windows_of(keys, options.shape.layers);
  return options;
}

void qwen3_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  shape_keys(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
  put_windows(options, config);
}

nn::ModelOptions olmo2_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-5, 0, 2048);
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "whole";
  options.transformer.norm = "sublayer";
  return options;
}

void olmo2_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  shape_keys(options, config);
  config["attention_bias"] = options.transformer.has_bias("qkv");
}

nn::ModelOptions phi3_options(const ConfigKeys& keys) {
  auto options = shape_of(keys, 1e-5, 0, 4096);
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

std::vector<ModuleNames> modules(std::string_view norm1, std::string_view norm2) {
  return {
      {"transformer.wte", {"model.embed_tokens"}},
      {"transformer.h.N.ln_1", {norm1}},
      {"transformer.h.N.attn.c_attn",
       {"model.layers.N.self_attn.q_proj", "model.layers.N.self_attn.k_proj",
        "model.layers.N.self_attn.v_proj"}},
      {"transformer.h.N.attn.q_norm", {"model.layers.N.self_attn.q_norm"}},
      {"transformer.h.N.attn.k_norm", {"model.layers.N.self_attn.k_norm"}},
      {"transformer.h.N.attn.c_proj", {"model.layers.N.self_attn.o_proj"}},
      {"transformer.h.N.ln_2", {norm2}},
      {"transformer.h.N.mlp.c_fc", {"model.layers.N.mlp.gate_proj", "model.layers.N.mlp.up_proj"}},
      {"transformer.h.N.mlp.c_proj", {"model.layers.N.mlp.down_proj"}},
      {"transformer.ln_f", {"model.norm"}},
      {"lm_head", {"lm_head"}}};
}

Family family(std::string_view type, std::string_view architecture,
              nn::ModelOptions (*options)(const ConfigKeys&),
              void (*keys)(const nn::ModelOptions&, core::OrderedJson&)) {
  return {.type = type,
          .architecture = architecture,
          .base = "model.",
          .modules =
              modules("model.layers.N.input_layernorm", "model.layers.N.post_attention_layernorm"),
          .buffers = {".rotary_emb.inv_freq"},
          .options = options,
          .keys = keys};
}

}  // namespace

std::vector<const Family*> llama_families() {
  static const Family llama = family("llama", "LlamaForCausalLM", llama_options, llama_keys);
  static const Family mistral =
      family("mistral", "MistralForCausalLM", mistral_options, mistral_keys);
  static const Family qwen2 = family("qwen2", "Qwen2ForCausalLM", qwen2_options, qwen2_keys);
  static const Family qwen3 = family("qwen3", "Qwen3ForCausalLM", qwen3_options, qwen3_keys);
  static const Family olmo2 = [] {
    Family made = family("olmo2", "Olmo2ForCausalLM", olmo2_options, olmo2_keys);
    made.modules = modules("model.layers.N.post_attention_layernorm",
                           "model.layers.N.post_feedforward_layernorm");
    return made;
  }();
  // Phi-3's matrices stand together as Tessera's do.
  static const Family phi3 = [] {
    Family made = family("phi3", "Phi3ForCausalLM", phi3_options, phi3_keys);
    for (auto& names : made.modules) {
      if (names.theirs.size() == 3) names.theirs = {"model.layers.N.self_attn.qkv_proj"};
      if (names.theirs.size() == 2) names.theirs = {"model.layers.N.mlp.gate_up_proj"};
    }
    return made;
  }();
  return {&llama, &mistral, &qwen2, &qwen3, &olmo2, &phi3};
}

}  // namespace model
