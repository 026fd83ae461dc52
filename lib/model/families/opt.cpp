// OPT: like GPT-2, with ReLU, matrices stored as (out, in), and a table of positions that begins
// with two rows for padding.

#include "model/families/family.h"

namespace model {
namespace {

nn::ModelOptions opt_options(const ConfigKeys& keys, const ClassRow& /*row*/) {
  auto options = sized(keys, "ffn_dim");
  auto& shape = options.shape;
  shape.dropout = keys.number("dropout", .1);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", true);
  options.transformer.context = keys.required("max_position_embeddings");
  options.transformer.activation = keys.activation("activation_function", "relu");
  if (!keys.truth("enable_bias", true)) options.transformer.bias_of = {"norm"};
  keys.expect("do_layer_norm_before", true, true);
  keys.expect("_remove_final_layer_norm", false, false);
  keys.expect("layer_norm_elementwise_affine", true, true);
  if (keys.whole("word_embed_proj_dim", shape.d_model) != shape.d_model)
    keys.unsupported("word_embed_proj_dim", "a width other than hidden_size");
  return options;
}

void opt_keys(const nn::ModelOptions& options, const ClassRow& /*row*/, core::OrderedJson& config) {
  const auto& shape = options.shape;
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["ffn_dim"] = shape.ffn_width();
  config["word_embed_proj_dim"] = shape.d_model;
  config["activation_function"] = their_activation(options.transformer.activation);
  config["max_position_embeddings"] = options.transformer.context;
  config["do_layer_norm_before"] = true;
  config["enable_bias"] = options.transformer.has_bias("qkv");
  config["dropout"] = shape.dropout;
  config["attention_dropout"] = shape.attention_dropout;
}

}  // namespace

const Family& opt_family() {
  static const Family family{.row = class_row("opt"),
      .base = "model.",
      .modules = {{"transformer.wte", {"model.decoder.embed_tokens"}},
          {"transformer.wpe", {"model.decoder.embed_positions"}, Layout::after_two},
          {"transformer.h.N.ln_1", {"model.decoder.layers.N.self_attn_layer_norm"}},
          {"transformer.h.N.attn.c_attn",
              {"model.decoder.layers.N.self_attn.q_proj", "model.decoder.layers.N.self_attn.k_proj",
                  "model.decoder.layers.N.self_attn.v_proj"}},
          {"transformer.h.N.attn.c_proj", {"model.decoder.layers.N.self_attn.out_proj"}},
          {"transformer.h.N.ln_2", {"model.decoder.layers.N.final_layer_norm"}},
          {"transformer.h.N.mlp.c_fc", {"model.decoder.layers.N.fc1"}},
          {"transformer.h.N.mlp.c_proj", {"model.decoder.layers.N.fc2"}},
          {"transformer.ln_f", {"model.decoder.final_layer_norm"}}, {"lm_head", {"lm_head"}}},
      .buffers = {},
      .options = opt_options,
      .keys = opt_keys};
  return family;
}

}  // namespace model
