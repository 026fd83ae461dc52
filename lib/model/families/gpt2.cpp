// GPT-2: learned positions, norms before each sub-layer, biases everywhere, matrices stored as (in,
// out).

#include "model/families/family.h"

namespace model {
namespace {

nn::ModelOptions gpt2_options(const ConfigKeys& keys, const ClassRow& /*row*/) {
  nn::ModelOptions options;
  auto& shape = options.shape;
  options.vocabulary.scale_embedding = false;
  options.transformer.context = keys.required("n_positions");
  shape.d_model = keys.required("n_embd");
  shape.layers = keys.required("n_layer");
  shape.heads = keys.required("n_head");
  expect_bounded(options, keys.origin());
  const auto inner = keys.size("n_inner", 0);
  shape.d_ff = inner == 4 * shape.d_model ? 0 : inner;
  options.transformer.norm_epsilon = keys.number("layer_norm_epsilon", 1e-5);
  shape.dropout = keys.number("resid_pdrop", .1);
  shape.attention_dropout = keys.number("attn_pdrop", .1);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", true);
  options.transformer.activation = keys.activation("activation_function", "gelu_new");
  keys.expect("scale_attn_weights", true, true);
  keys.expect("scale_attn_by_inverse_layer_idx", false, false);
  keys.expect("add_cross_attention", false, false);
  return options;
}

void gpt2_keys(
    const nn::ModelOptions& options, const ClassRow& /*row*/, core::OrderedJson& config) {
  const auto& shape = options.shape;
  config["n_positions"] = options.transformer.context;
  config["n_embd"] = shape.d_model;
  config["n_layer"] = shape.layers;
  config["n_head"] = shape.heads;
  config["n_inner"] = shape.ffn_width();
  config["activation_function"] = their_activation(options.transformer.activation);
  config["layer_norm_epsilon"] = options.transformer.norm_epsilon;
  config["resid_pdrop"] = shape.dropout;
  config["embd_pdrop"] = shape.dropout;
  config["attn_pdrop"] = shape.attention_dropout;
}

}  // namespace

const Family& gpt2_family() {
  const auto same = [](std::string_view name, Layout layout = Layout::as_is) {
    return ModuleNames{name, {name}, layout};
  };
  static const Family family{.row = class_row("gpt2"),
      .base = "transformer.",
      .modules = {same("transformer.wte"), same("transformer.wpe"), same("transformer.h.N.ln_1"),
          same("transformer.h.N.attn.c_attn", Layout::transposed),
          same("transformer.h.N.attn.c_proj", Layout::transposed), same("transformer.h.N.ln_2"),
          same("transformer.h.N.mlp.c_fc", Layout::transposed),
          same("transformer.h.N.mlp.c_proj", Layout::transposed), same("transformer.ln_f"),
          same("lm_head")},
      .buffers = {".attn.bias", ".attn.masked_bias"},  // causal masks, saved by older versions
      .options = gpt2_options,
      .keys = gpt2_keys};
  return family;
}

}  // namespace model
