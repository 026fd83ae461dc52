// Phi 1 to 2: one norm before both sub-layers, which run in parallel, partial rotary positions, and
// biases everywhere, in the head too.

#include "model/families/family.h"

namespace model {
namespace {

nn::ModelOptions phi_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = sized(keys, "intermediate_size");
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = keys.number("resid_pdrop", 0);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", row.tied);
  options.vocabulary.head_bias = true;
  read_kv_heads(keys, row, options);
  read_head_width(keys, row, options);
  transformer.context = keys.whole("max_position_embeddings", row.context);
  transformer.positions = "rope";
  transformer.norm = "parallel-one";
  transformer.norm_epsilon = keys.number("layer_norm_eps", row.epsilon);
  transformer.activation = keys.activation(row.activation_key, row.activation);
  transformer.rope = rope_of(keys, row, transformer.context);
  keys.expect("qk_layernorm", false, false);
  return options;
}

void phi_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& shape = options.shape;
  const auto& transformer = options.transformer;
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = nn::head_shape(shape, transformer).kv_heads;
  config["intermediate_size"] = shape.ffn_width();
  config["hidden_act"] = their_activation(transformer.activation);
  config["layer_norm_eps"] = transformer.norm_epsilon;
  config["max_position_embeddings"] = transformer.context;
  config["resid_pdrop"] = shape.dropout;
  config["attention_dropout"] = shape.attention_dropout;
  config["qk_layernorm"] = false;
  const auto width = nn::head_shape(shape, transformer).width;
  if (width * shape.heads != shape.d_model) config["head_dim"] = width;
  put_rope(transformer, row, config);
}

}  // namespace

const Family& phi_family() {
  static const Family family{.row = class_row("phi"),
      .base = "model.",
      .modules = {{"transformer.wte", {"model.embed_tokens"}},
          {"transformer.h.N.ln_1", {"model.layers.N.input_layernorm"}},
          {"transformer.h.N.attn.c_attn",
              {"model.layers.N.self_attn.q_proj", "model.layers.N.self_attn.k_proj",
                  "model.layers.N.self_attn.v_proj"}},
          {"transformer.h.N.attn.c_proj", {"model.layers.N.self_attn.dense"}},
          {"transformer.h.N.mlp.c_fc", {"model.layers.N.mlp.fc1"}},
          {"transformer.h.N.mlp.c_proj", {"model.layers.N.mlp.fc2"}},
          {"transformer.ln_f", {"model.final_layernorm"}}, {"lm_head", {"lm_head"}}},
      .buffers = {".rotary_emb.inv_freq"},
      .options = phi_options,
      .keys = phi_keys};
  return family;
}

}  // namespace model
