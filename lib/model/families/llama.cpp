// Llama and the families that differ from it in a few keys: RMSNorm, rotary positions, gated
// feed-forward networks, grouped-query attention.

#include "model/families/family.h"

namespace model {
namespace {

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

}  // namespace

// Ministral 3: Mistral with YaRN and queries that grow with their position
// (RopeOptions::query_growth).
void ministral3_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  query_growth_keys(pairs, options.transformer.rope);
}

void qwen2_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  options.transformer.bias = true;
  options.transformer.bias_of = {"qkv"};
}

void qwen3_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  options.transformer.qk_norm = "head";
}

// Olmo 2 and 3. Olmo 3 has windows, and angles of their own in layers with one.
void olmo_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  options.transformer.qk_norm = "whole";
  options.transformer.norm = "sublayer";
}

// SmolLM 3: some layers have no rotary positions, every fourth unless a list names them.
void smollm3_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  const auto layers = options.shape.layers;
  auto& skip = options.transformer.rope.skip;
  if (pairs.from != nullptr) {
    const ConfigKeys& keys = *pairs.from;
    skip = skip_of(keys, layers);
    if (has_switched_windows(keys, keys.has("sliding_window")))
      options.transformer.attention_window =
          windows_of(keys, layers, keys.whole("sliding_window", 0),
              [skip](std::int64_t i) { return skip > 0 && (i + 1) % skip == 0; });
    return;
  }
  auto turned = core::OrderedJson::array();
  for (std::int64_t i = 0; i < layers; ++i)
    turned.push_back(skip == 0 || (i + 1) % skip != 0 ? 1 : 0);
  (*pairs.to)["no_rope_layers"] = turned;
  if (skip > 0) (*pairs.to)["no_rope_layer_interval"] = skip;
}

void granite_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  auto& transformer = options.transformer;
  const auto width = nn::head_shape(options.shape, transformer).width;
  const double usual = 1 / std::sqrt(static_cast<double>(width));
  if (pairs.to != nullptr) {
    (*pairs.to)["attention_multiplier"] =
        transformer.attention_scale > 0 ? transformer.attention_scale : usual;
    for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"})
      (*pairs.to)[key] = 1.0;
    return;
  }
  const GraniteFactors factors(*pairs.from);
  transformer.norm_epsilon /= factors.embedding * factors.embedding;
  const double scale = pairs.from->number("attention_multiplier", 1);
  if (scale <= 0) pairs.from->unsupported("attention_multiplier", "a number that is not positive");
  transformer.attention_scale = std::abs(scale / usual - 1) < 1e-12 ? 0 : scale;
}

std::vector<WeightFactor> granite_factors(const ConfigKeys& keys) {
  const GraniteFactors factors(keys);
  const double part = factors.residual / factors.embedding;
  return {{"transformer.h.N.attn.c_proj", part}, {"transformer.h.N.mlp.c_proj", part},
      {"transformer.ln_f", 1 / factors.logits}};
}

void phi3_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  pairs("resid_pdrop", options.shape.dropout, 0);
  const auto& transformer = options.transformer;
  const auto& rope = transformer.rope;
  const bool longrope = rope.scaling == "longrope";
  if (pairs.to != nullptr)
    (*pairs.to)["original_max_position_embeddings"] = longrope ? rope.trained : transformer.context;
  else if (longrope && transformer.d_head > 0)  // the class checks the number of factors by it
    pairs.from->unsupported("head_dim", "with longrope, a number other than hidden_size / heads");
}

}  // namespace model
