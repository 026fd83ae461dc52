// Common part of Llama's and Gemma's families: RMS norms, rotary embeddings, gated MLPs,
// grouped-query attention.

#include "model/families/family.h"

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

void gated_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  size_keys(pairs, options);
  kv_heads_key(pairs, options, row);
  head_width_key(pairs, options, row);
  inner_key(pairs, options, row.width_key);
  pairs.activation(row.activation_key, transformer.activation, row.activation);
  pairs("rms_norm_eps", transformer.norm_epsilon, row.epsilon);
  pairs("max_position_embeddings", transformer.context, row.context);
  pairs("attention_dropout", shape.attention_dropout, 0);
  rope_keys(pairs, transformer, row);
  bool attention = pairs.to != nullptr && transformer.has_bias("qkv"),
       mlp = pairs.to != nullptr && transformer.has_bias("feed-forward");
  if (row.has("attention_bias")) pairs("attention_bias", attention, false);
  if (row.has("mlp_bias")) pairs("mlp_bias", mlp, false);
  if (pairs.to != nullptr) return put_windows(options, row, *pairs.to);
  shape.dropout = 0;
  transformer.norm_kind = "rms";
  transformer.feed_forward = "gated";
  std::vector<std::string> biases;
  if (attention) biases = {"qkv", "output"};
  if (mlp) biases.emplace_back("feed-forward");
  transformer.bias = !biases.empty();
  transformer.bias_of = biases;
  transformer.attention_window = windows_of_class(*pairs.from, row, shape.layers);
  if (row.angles == Angles::by_kind && widest(transformer.attention_window) > 0) {
    auto& rope = transformer.rope;
    const double local = local_theta_of(*pairs.from, row);
    rope.local_theta = rope.scaling == "none" && local == rope.theta ? 0 : local;
  }
}

}  // namespace model
