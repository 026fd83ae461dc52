#include "model/families/gated_family.h"

namespace model {
namespace {

std::vector<std::int64_t> windows_of_class(
    const ConfigKeys& keys, const ClassRow& row, std::int64_t layers) {
  const auto window = keys.is_null("sliding_window") ? 0 : keys.whole("sliding_window", row.window);
  if (row.windows == Windows::switched) {
    const auto from = keys.whole("max_window_layers", 28);
    if (!has_switched_windows(keys, !keys.is_null("sliding_window"))) return {};
    return windows_of(keys, layers, window, [from](std::int64_t i) { return i >= from; });
  }
  if (row.windows == Windows::periodic) {
    const auto period =
        row.type == "gemma3_text" ? keys.size("sliding_window_pattern", row.period) : row.period;
    return windows_of(
        keys, layers, window, [period](std::int64_t i) { return (i + 1) % period != 0; });
  }
  if (row.windows != Windows::every) return {};
  // transformers reads a Mistral with this key as its class Ministral.
  if (row.has("layer_types") && keys.has("layer_types"))
    return windows_of(keys, layers, window, [](std::int64_t) { return true; });
  if (window < 1 && keys.has("sliding_window"))
    keys.unsupported("sliding_window", "an empty window");
  return window > 0 ? std::vector{window} : std::vector<std::int64_t>{};
}

void put_windows(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  if (row.windows == Windows::none) return;
  const auto& windows = options.transformer.attention_window;
  const auto layers = options.shape.layers, window = widest(windows);
  config["sliding_window"] = window > 0 ? core::OrderedJson(window) : core::OrderedJson(nullptr);
  if (row.windows == Windows::every) return;
  if (row.windows == Windows::periodic) {
    if (window == 0) config["sliding_window"] = row.window;
  } else {
    config["use_sliding_window"] = window > 0;
    config["max_window_layers"] = window > 0 && windows.size() == 1 ? 0 : layers;
    if (window == 0) return;
  }
  config["layer_types"] = layer_types(windows, layers);
}

}  // namespace

nn::ModelOptions gated_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = sized(keys, row.width_key);
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = 0;
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", row.tied);
  read_head_width(keys, row, options);
  read_kv_heads(keys, row, options);
  transformer.context = keys.whole("max_position_embeddings", row.context);
  transformer.positions = "rope";
  transformer.norm_kind = "rms";
  transformer.norm_epsilon = keys.number("rms_norm_eps", row.epsilon);
  transformer.feed_forward = "gated";
  transformer.activation = keys.activation(row.activation_key, row.activation);
  std::vector<std::string> biases;
  if (row.has("attention_bias") && keys.truth("attention_bias", false)) biases = {"qkv", "output"};
  if (row.has("mlp_bias") && keys.truth("mlp_bias", false)) biases.emplace_back("feed-forward");
  set_biases(options, biases);
  transformer.rope = rope_of(keys, row, transformer.context);
  transformer.attention_window = windows_of_class(keys, row, shape.layers);
  if (row.angles == Angles::by_kind && widest(transformer.attention_window) > 0) {
    auto& rope = transformer.rope;
    const double local = local_theta_of(keys, row);
    rope.local_theta = rope.scaling == "none" && local == rope.theta ? 0 : local;
  }
  return options;
}

void put_gated(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& shape = options.shape;
  const auto& transformer = options.transformer;
  const auto heads = nn::head_shape(shape, transformer);
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = heads.kv_heads;
  config["head_dim"] = heads.width;
  config[row.width_key] = shape.ffn_width();
  config[row.activation_key] = their_activation(transformer.activation);
  config["rms_norm_eps"] = transformer.norm_epsilon;
  config["max_position_embeddings"] = transformer.context;
  config["attention_dropout"] = shape.attention_dropout;
  put_rope(transformer, row, config);
  if (row.has("attention_bias")) config["attention_bias"] = transformer.has_bias("qkv");
  if (row.has("mlp_bias")) config["mlp_bias"] = transformer.has_bias("feed-forward");
  put_windows(options, row, config);
}

void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds) {
  options.transformer.bias = !kinds.empty();
  options.transformer.bias_of = std::move(kinds);
}

std::vector<ModuleNames> gated_modules(std::string_view norm1, std::string_view norm2) {
  return {{"transformer.wte", {"model.embed_tokens"}}, {"transformer.h.N.ln_1", {norm1}},
      {"transformer.h.N.attn.c_attn",
          {"model.layers.N.self_attn.q_proj", "model.layers.N.self_attn.k_proj",
              "model.layers.N.self_attn.v_proj"}},
      {"transformer.h.N.attn.q_norm", {"model.layers.N.self_attn.q_norm"}},
      {"transformer.h.N.attn.k_norm", {"model.layers.N.self_attn.k_norm"}},
      {"transformer.h.N.attn.c_proj", {"model.layers.N.self_attn.o_proj"}},
      {"transformer.h.N.ln_2", {norm2}},
      {"transformer.h.N.mlp.c_fc", {"model.layers.N.mlp.gate_proj", "model.layers.N.mlp.up_proj"}},
      {"transformer.h.N.mlp.c_proj", {"model.layers.N.mlp.down_proj"}},
      {"transformer.ln_f", {"model.norm"}}, {"lm_head", {"lm_head"}}};
}

Family gated_family(std::string_view type, Family::Options options, Family::Keys keys) {
  return {.row = class_row(type),
      .base = "model.",
      .modules = gated_modules(
          "model.layers.N.input_layernorm", "model.layers.N.post_attention_layernorm"),
      .buffers = {".rotary_emb.inv_freq"},
      .options = options,
      .keys = keys};
}

}  // namespace model
