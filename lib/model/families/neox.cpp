// GPT-NeoX and Pythia: norms before both sub-layers, which run in parallel, and partial rotary
// positions. The fused matrix holds queries, keys and values head by head.

#include "model/families/family.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

constexpr double kTurned = 0.25;

nn::ModelOptions neox_options(const ConfigKeys& keys) {
  auto options = sized(keys, "intermediate_size");
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = keys.number("hidden_dropout", 0);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", false);
  transformer.context = keys.whole("max_position_embeddings", 2048);
  transformer.positions = "rope";
  transformer.norm = keys.truth("use_parallel_residual", true) ? "parallel" : "pre";
  transformer.norm_epsilon = keys.number("layer_norm_eps", 1e-5);
  transformer.activation = keys.activation("hidden_act", "gelu");
  if (!keys.truth("attention_bias", true)) transformer.bias_of = {"feed-forward", "norm"};
  transformer.rope = rope_of(keys, transformer.context, keys.number("rotary_emb_base", 1e4),
                             keys.number("rotary_pct", kTurned));
  return options;
}

void neox_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
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
  put_rope(transformer.rope, config);
  config["rotary_emb_base"] = transformer.rope.theta;
  config["rotary_pct"] = transformer.rope.share;
}

}  // namespace

const Family& neox_family() {
  static const Family family{
      .type = "gpt_neox",
      .architecture = "GPTNeoXForCausalLM",
      .base = "gpt_neox.",
      .modules = {{"transformer.wte", {"gpt_neox.embed_in"}},
                  {"transformer.h.N.ln_1", {"gpt_neox.layers.N.input_layernorm"}},
                  {"transformer.h.N.attn.c_attn",
                   {"gpt_neox.layers.N.attention.query_key_value"},
                   Layout::by_head},
                  {"transformer.h.N.attn.c_proj", {"gpt_neox.layers.N.attention.dense"}},
                  {"transformer.h.N.ln_2", {"gpt_neox.layers.N.post_attention_layernorm"}},
                  {"transformer.h.N.mlp.c_fc", {"gpt_neox.layers.N.mlp.dense_h_to_4h"}},
                  {"transformer.h.N.mlp.c_proj", {"gpt_neox.layers.N.mlp.dense_4h_to_h"}},
                  {"transformer.ln_f", {"gpt_neox.final_layer_norm"}},
                  {"lm_head", {"embed_out"}}},
      .buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
      .options = neox_options,
      .keys = neox_keys};
  return family;
}

}  // namespace model
