// Gemma 1 to 3. Gemma is Llama with norms times 1 + weight, GELU, and embeddings times the square
// root of the width. Gemma 2 and 3 have norms before and after each sub-layer and windows in some
// layers. Gemma 2 caps scores. Gemma 3 normalises queries and keys and has two rotary bases.

#include "model/families/family.h"

namespace model {
namespace {

void gemma_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gated_keys(pairs, options, row);
  options.vocabulary.scale_embedding = true;
  options.transformer.norm_kind = "rms-one";
}

// A "softcapping" key. An absent key and a null have different meanings.
void cap_key(const ConfigPairs& pairs, const char* key, double& cap, double otherwise) {
  if (pairs.from != nullptr)
    cap = pairs.from->is_null(key) ? 0 : pairs.from->number(key, otherwise);
  else (*pairs.to)[key] = cap > 0 ? core::OrderedJson(cap) : core::OrderedJson(nullptr);
}

// What Gemma 2 and 3 share. `cap`: that of the logits in files without the key.
void sandwiched_keys(
    const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row, double cap) {
  gemma_keys(pairs, options, row);
  auto& transformer = options.transformer;
  const auto width = nn::head_shape(options.shape, transformer).width;
  if (pairs.to != nullptr) {
    const double scale = transformer.attention_scale;
    (*pairs.to)["query_pre_attn_scalar"] =
        scale > 0 ? std::llround(std::min(1 / (scale * scale), 1e15)) : width;
  } else {
    transformer.norm = "sandwich";
    const double asked = pairs.from->number("query_pre_attn_scalar", 256);
    if (asked <= 0)
      pairs.from->unsupported("query_pre_attn_scalar", "a number that is not positive");
    const bool usual = asked == static_cast<double>(width);
    transformer.attention_scale = usual ? 0 : 1 / std::sqrt(asked);
  }
  cap_key(pairs, "final_logit_softcapping", options.vocabulary.logit_softcap, cap);
}

}  // namespace

void gemma1_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  gemma_keys(pairs, options, row);
  // The class takes "gelu", which the first files have, for its approximation.
  auto& activation = options.transformer.activation;
  if (activation == "gelu-exact") activation = "gelu";
  // The key of version 4.
  if (pairs.to != nullptr) (*pairs.to)["hidden_activation"] = (*pairs.to)["hidden_act"];
}

void gemma2_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  sandwiched_keys(pairs, options, row, 30);
  cap_key(pairs, "attn_logit_softcapping", options.transformer.attention_softcap, 50);
}

void gemma3_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  sandwiched_keys(pairs, options, row, 0);
  options.transformer.qk_norm = "head";
}

}  // namespace model
