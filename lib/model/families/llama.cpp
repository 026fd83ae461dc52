// Llama and the families that differ from it in a few keys: RMSNorm, rotary positions, gated
// feed-forward networks, grouped-query attention.

#include "model/families/gated_family.h"

namespace model {
namespace {

// Ministral 3: Mistral with YaRN and queries that grow with their position
// (RopeOptions::query_growth).
nn::ModelOptions ministral3_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  read_query_growth(keys, options.transformer.rope);
  return options;
}

void ministral3_keys(
    const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_gated(options, row, config);
  put_query_growth(options.transformer.rope, config);
}

nn::ModelOptions qwen2_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  set_biases(options, {"qkv"});
  return options;
}

nn::ModelOptions qwen3_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  options.transformer.qk_norm = "head";
  return options;
}

// Olmo 2 and 3. Olmo 3 has windows, and angles of their own in layers with one.
nn::ModelOptions olmo_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  options.transformer.qk_norm = "whole";
  options.transformer.norm = "sublayer";
  return options;
}

// Returns n if each n-th layer has no rotary positions; 0: all layers have.
std::int64_t skip_of(const ConfigKeys& keys, std::int64_t layers) {
  const auto turned = keys.wholes("no_rope_layers");
  if (!keys.has("no_rope_layers")) return keys.size("no_rope_layer_interval", 4);
  const auto refuse = [&](const char* what) { keys.unsupported("no_rope_layers", what); };
  if (std::ssize(turned) != layers) refuse("a different number of layers");
  const auto first = std::find(turned.begin(), turned.end(), 0);
  const auto skip = first == turned.end() ? 0 : first - turned.begin() + 1;
  for (std::int64_t i = 0; i < std::ssize(turned); ++i)
    if ((turned[static_cast<std::size_t>(i)] != 0) != (skip == 0 || (i + 1) % skip != 0))
      refuse("layers without a regular interval");
  return skip;
}

// SmolLM 3: some layers have no rotary positions, every fourth unless a list names them.
nn::ModelOptions smollm3_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  auto& transformer = options.transformer;
  const auto skip = transformer.rope.skip = skip_of(keys, options.shape.layers);
  if (has_switched_windows(keys, keys.has("sliding_window")))
    transformer.attention_window =
        windows_of(keys, options.shape.layers, keys.whole("sliding_window", 0),
            [skip](std::int64_t i) { return skip > 0 && (i + 1) % skip == 0; });
  return options;
}

void smollm3_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_gated(options, row, config);
  auto turned = core::OrderedJson::array();
  const auto skip = options.transformer.rope.skip;
  for (std::int64_t i = 0; i < options.shape.layers; ++i)
    turned.push_back(skip == 0 || (i + 1) % skip != 0 ? 1 : 0);
  config["no_rope_layers"] = turned;
  if (skip > 0) config["no_rope_layer_interval"] = skip;
}

// Granite: Llama with four factors. Multiplying embeddings by m before the norms of the sub-layers
// equals an epsilon of 1 / m^2 and sub-layer outputs divided by m.
struct GraniteFactors {
  double embedding, residual, logits;
  explicit GraniteFactors(const ConfigKeys& keys)
      : embedding(keys.number("embedding_multiplier", 1)),
        residual(keys.number("residual_multiplier", 1)), logits(keys.number("logits_scaling", 1)) {
    for (const auto& [key, value] :
        {std::pair("embedding_multiplier", embedding), std::pair("logits_scaling", logits)})
      if (!(std::abs(value) > 1e-6)) keys.unsupported(key, "0");
  }
};

nn::ModelOptions granite_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
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

void granite_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_gated(options, row, config);
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
  return {{"transformer.h.N.attn.c_proj", part}, {"transformer.h.N.mlp.c_proj", part},
      {"transformer.ln_f", 1 / factors.logits}};
}

nn::ModelOptions phi3_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = gated_options(keys, row);
  options.shape.dropout = keys.number("resid_pdrop", 0);
  // The class checks the number of factors against this width.
  if (options.transformer.rope.scaling == "longrope" && options.transformer.d_head > 0)
    keys.unsupported("head_dim", "with longrope, a number other than hidden_size / heads");
  return options;
}

void phi3_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  put_gated(options, row, config);
  config["resid_pdrop"] = options.shape.dropout;
  const auto& rope = options.transformer.rope;
  config["original_max_position_embeddings"] =
      rope.scaling == "longrope" ? rope.trained : options.transformer.context;
}

}  // namespace

std::vector<const Family*> llama_families() {
  static const Family llama = gated_family("llama");
  static const Family mistral = gated_family("mistral");
  static const Family qwen2 = gated_family("qwen2", qwen2_options);
  static const Family qwen3 = gated_family("qwen3", qwen3_options);
  const auto olmo = [](std::string_view type) {
    Family made = gated_family(type, olmo_options);
    made.modules = gated_modules(
        "model.layers.N.post_attention_layernorm", "model.layers.N.post_feedforward_layernorm");
    return made;
  };
  static const Family olmo2 = olmo("olmo2");
  static const Family olmo3 = olmo("olmo3");
  static const Family smollm3 = gated_family("smollm3", smollm3_options, smollm3_keys);
  static const Family granite = [] {
    Family made = gated_family("granite", granite_options, granite_keys);
    made.factors = granite_factors;
    return made;
  }();
  // Phi-3 fuses the matrices that Tessera fuses.
  static const Family phi3 = [] {
    Family made = gated_family("phi3", phi3_options, phi3_keys);
    for (auto& names : made.modules) {
      if (names.theirs.size() == 3) names.theirs = {"model.layers.N.self_attn.qkv_proj"};
      if (names.theirs.size() == 2) names.theirs = {"model.layers.N.mlp.gate_up_proj"};
    }
    return made;
  }();
  static const Family ministral3 = gated_family("ministral3", ministral3_options, ministral3_keys);
  return {&llama, &mistral, &qwen2, &qwen3, &olmo2, &phi3, &olmo3, &smollm3, &granite, &ministral3};
}

}  // namespace model
