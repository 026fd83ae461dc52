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

}  // namespace

// GPT-2: learned positions, norms before each sub-layer, biases everywhere, matrices stored as (in,
// out).
void gpt2_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& /*row*/) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  pairs.required("n_positions", transformer.context);
  pairs.required("n_embd", shape.d_model);
  pairs.required("n_layer", shape.layers);
  pairs.required("n_head", shape.heads);
  inner_key(pairs, options, "n_inner", false);
  pairs.activation("activation_function", transformer.activation, "gelu_new");
  pairs("layer_norm_epsilon", transformer.norm_epsilon, 1e-5);
  pairs("resid_pdrop", shape.dropout, .1);
  if (pairs.to != nullptr) (*pairs.to)["embd_pdrop"] = shape.dropout;
  pairs("attn_pdrop", shape.attention_dropout, .1);
  if (pairs.to != nullptr) return;
  pairs.from->expect("scale_attn_weights", true);
  pairs.from->expect("scale_attn_by_inverse_layer_idx", false);
  pairs.from->expect("add_cross_attention", false);
}

// OPT: like GPT-2, with ReLU, matrices stored as (out, in), and a table of positions that begins
// with two rows for padding.
void opt_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  bool biased = transformer.has_bias("qkv");
  size_keys(pairs, options);
  inner_key(pairs, options, row.width_key);
  auto width = shape.d_model;
  pairs("word_embed_proj_dim", width, shape.d_model);
  pairs.activation("activation_function", transformer.activation, "relu");
  pairs.required("max_position_embeddings", transformer.context);
  pairs.fixed("do_layer_norm_before", true);
  pairs("enable_bias", biased, true);
  pairs("dropout", shape.dropout, .1);
  pairs("attention_dropout", shape.attention_dropout, 0);
  if (pairs.to != nullptr) return;
  if (!biased) transformer.bias_of = {"norm"};
  pairs.from->expect("_remove_final_layer_norm", false);
  pairs.from->expect("layer_norm_elementwise_affine", true);
  if (width != shape.d_model)
    pairs.from->unsupported("word_embed_proj_dim", "a width other than hidden_size");
}

// GPT-Neo: like GPT-2, with matrices stored as (out, in), separate queries, keys and values without
// biases, windows in every other layer, and unscaled scores.
void neo_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& /*row*/) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  pairs.required("hidden_size", shape.d_model);
  pairs.required("num_layers", shape.layers);
  pairs.required("num_heads", shape.heads);
  inner_key(pairs, options, "intermediate_size", false);
  pairs.required("max_position_embeddings", transformer.context);
  pairs.activation("activation_function", transformer.activation, "gelu_new");
  pairs("layer_norm_epsilon", transformer.norm_epsilon, 1e-5);
  pairs("resid_dropout", shape.dropout, 0);
  if (pairs.to != nullptr) (*pairs.to)["embed_dropout"] = shape.dropout;
  pairs("attention_dropout", shape.attention_dropout, 0);
  auto& windows = transformer.attention_window;
  auto window = windows.empty() || widest(windows) == 0 ? 256 : widest(windows);
  pairs("window_size", window, 256);
  if (pairs.from != nullptr) {
    transformer.bias_of = {"output", "feed-forward", "norm"};
    transformer.attention_scale = 1;
    windows = windows_of(*pairs.from, shape.layers, window);
    return;
  }
  auto kinds = core::OrderedJson::array();
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto own = windows.empty() ? 0 : windows[static_cast<std::size_t>(i) % windows.size()];
    kinds.push_back(own > 0 ? "local" : "global");
  }
  (*pairs.to)["attention_types"] = {{kinds, 1}};
}

}  // namespace model
