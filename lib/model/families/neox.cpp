// GPT-NeoX and Pythia: norms before both sub-layers, which run in parallel, and partial rotary
// positions. The fused matrix holds queries, keys and values head by head.

#include "model/families/family.h"

namespace model {
namespace {

nn::ModelOptions neox_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = sized(keys, "intermediate_size");
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = keys.number("hidden_dropout", 0);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", row.tied);
  read_head_width(keys, row, options);
  transformer.context = keys.whole("max_position_embeddings", row.context);
  transformer.positions = "rope";
  transformer.norm = keys.truth("use_parallel_residual", true) ? "parallel" : "pre";
  transformer.norm_epsilon = keys.number("layer_norm_eps", row.epsilon);
  transformer.activation = keys.activation(row.activation_key, row.activation);
  if (!keys.truth("attention_bias", true)) transformer.bias_of = {"feed-forward", "norm"};
  transformer.rope = rope_of(keys, row, transformer.context);
  return options;
}

void neox_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& shape = options.shape;
  const auto& transformer = options.transformer;
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["intermediate_size"] = shape.ffn_width();
  config["hidden_act"] = their_activation(transformer.activation);
  config["layer_norm_eps"] = transformer.norm_epsilon;
  config["max_position_embeddings"] = transformer.context;
  config["use_parallel_residual"] = transformer.norm == "parallel";
  config["attention_bias"] = transformer.has_bias("qkv");
  config["hidden_dropout"] = shape.dropout;
  config["attention_dropout"] = shape.attention_dropout;
  put_rope(transformer, row, config);
}

}  // namespace

const Family& neox_family() {
  static const Family family{.row = class_row("gpt_neox"),
      .base = "gpt_neox.",
      .modules = {{"transformer.wte", {"gpt_neox.embed_in"}},
          {"transformer.h.N.ln_1", {"gpt_neox.layers.N.input_layernorm"}},
          {"transformer.h.N.attn.c_attn", {"gpt_neox.layers.N.attention.query_key_value"},
              Layout::by_head},
          {"transformer.h.N.attn.c_proj", {"gpt_neox.layers.N.attention.dense"}},
          {"transformer.h.N.ln_2", {"gpt_neox.layers.N.post_attention_layernorm"}},
          {"transformer.h.N.mlp.c_fc", {"gpt_neox.layers.N.mlp.dense_h_to_4h"}},
          {"transformer.h.N.mlp.c_proj", {"gpt_neox.layers.N.mlp.dense_4h_to_h"}},
          {"transformer.ln_f", {"gpt_neox.final_layer_norm"}}, {"lm_head", {"embed_out"}}},
      .buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
      .options = neox_options,
      .keys = neox_keys};
  return family;
}

}  // namespace model
