// GPT-Neo: like GPT-2, with matrices stored as (out, in), separate queries, keys and values without
// biases, windows in every other layer, and unscaled scores.

#include "model/families/family.h"

namespace model {
namespace {

// "attention_layers" lists a kind per layer. "attention_types", for example [[["global", "local"],
// 12]], lists kinds with the number of repetitions.
std::vector<std::int64_t> windows_of(
    const ConfigKeys& keys, std::int64_t layers, std::int64_t window) {
  const bool plain = keys.has("attention_layers");
  const char* const key = plain ? "attention_layers" : "attention_types";
  if (window < 1) keys.unsupported("window_size", "an empty window");
  std::vector<std::int64_t> windows;
  for (const auto& kind : plain ? keys.texts(key) : keys.repeated_texts(key)) {
    if (kind != "global" && kind != "local") keys.unsupported(key, '"' + kind + '"');
    windows.push_back(kind == "local" ? window : 0);
  }
  if (std::ssize(windows) != layers)
    keys.unsupported(key, "a number of layers other than num_layers");
  return windows;
}

nn::ModelOptions neo_options(const ConfigKeys& keys, const ClassRow& /*row*/) {
  nn::ModelOptions options;
  auto& shape = options.shape;
  options.vocabulary.scale_embedding = false;
  shape.d_model = keys.required("hidden_size");
  shape.layers = keys.required("num_layers");
  shape.heads = keys.required("num_heads");
  expect_bounded(options, keys.origin());
  const auto inner = keys.size("intermediate_size", 0);
  shape.d_ff = inner == 4 * shape.d_model ? 0 : inner;
  shape.dropout = keys.number("resid_dropout", 0);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", true);
  auto& transformer = options.transformer;
  transformer.context = keys.required("max_position_embeddings");
  transformer.norm_epsilon = keys.number("layer_norm_epsilon", 1e-5);
  transformer.activation = keys.activation("activation_function", "gelu_new");
  transformer.bias_of = {"output", "feed-forward", "norm"};
  transformer.attention_scale = 1;
  transformer.attention_window = windows_of(keys, shape.layers, keys.whole("window_size", 256));
  return options;
}

void neo_keys(const nn::ModelOptions& options, const ClassRow& /*row*/, core::OrderedJson& config) {
  const auto& shape = options.shape;
  const auto& windows = options.transformer.attention_window;
  config["hidden_size"] = shape.d_model;
  config["num_layers"] = shape.layers;
  config["num_heads"] = shape.heads;
  config["intermediate_size"] = shape.ffn_width();
  config["max_position_embeddings"] = options.transformer.context;
  config["activation_function"] = their_activation(options.transformer.activation);
  config["layer_norm_epsilon"] = options.transformer.norm_epsilon;
  config["resid_dropout"] = shape.dropout;
  config["embed_dropout"] = shape.dropout;
  config["attention_dropout"] = shape.attention_dropout;
  auto kinds = core::OrderedJson::array();
  std::int64_t window = 0;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto own = windows.empty() ? 0 : windows[static_cast<std::size_t>(i) % windows.size()];
    kinds.push_back(own > 0 ? "local" : "global");
    window = own > 0 ? own : window;
  }
  config["window_size"] = window > 0 ? window : 256;
  config["attention_types"] = {{kinds, 1}};
}

}  // namespace

const Family& gpt_neo_family() {
  const auto same = [](std::string_view name) { return ModuleNames{name, {name}}; };
  static const Family family{.row = class_row("gpt_neo"),
      .base = "transformer.",
      .modules = {same("transformer.wte"), same("transformer.wpe"), same("transformer.h.N.ln_1"),
          {"transformer.h.N.attn.c_attn",
              {"transformer.h.N.attn.attention.q_proj", "transformer.h.N.attn.attention.k_proj",
                  "transformer.h.N.attn.attention.v_proj"}},
          {"transformer.h.N.attn.c_proj", {"transformer.h.N.attn.attention.out_proj"}},
          same("transformer.h.N.ln_2"), same("transformer.h.N.mlp.c_fc"),
          same("transformer.h.N.mlp.c_proj"), same("transformer.ln_f"), same("lm_head")},
      .buffers = {".attn.attention.bias", ".attn.attention.masked_bias"},
      .options = neo_options,
      .keys = neo_keys};
  return family;
}

}  // namespace model
