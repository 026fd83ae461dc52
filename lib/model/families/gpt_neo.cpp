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

}  // namespace

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
