// Phi 1 to 2: one norm before both sub-layers, which run in parallel, partial rotary positions, and
// biases everywhere, in the head too.

#include "model/families/family.h"
#include "model/families/rope_keys.h"

namespace model {
namespace {

constexpr double kPhiTurned = 0.5;

nn::ModelOptions phi_options(const ConfigKeys& keys) {
  auto options = sized(keys, "intermediate_size");
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = keys.number("resid_pdrop", 0);
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", false);
  options.vocabulary.head_bias = true;
  const auto kv_heads = keys.size("num_key_value_heads", shape.heads);
  transformer.kv_heads = kv_heads == shape.heads ? 0 : kv_heads;
  transformer.context = keys.whole("max_position_embeddings", 2048);
  transformer.positions = "rope";
  transformer.norm = "parallel-one";
  transformer.norm_epsilon = keys.number("layer_norm_eps", 1e-5);
  transformer.activation = keys.activation("hidden_act", "gelu_new");
  transformer.rope = rope_of(keys, transformer.context, 1e4, kPhiTurned);
  keys.expect("qk_layernorm", false, false);
  return options;
}

void phi_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
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
  put_rope(transformer.rope, config);
  config["partial_rotary_factor"] = transformer.rope.share;
}

}  // namespace

const Family& phi_family() {
  static const Family family{
      .type = "phi",
      .architecture = "PhiForCausalLM",
      .base = "model.",
      .modules = {{"transformer.wte", {"model.embed_tokens"}},
                  {"transformer.h.N.ln_1", {"model.layers.N.input_layernorm"}},
                  {"transformer.h.N.attn.c_attn",
                   {"model.layers.N.self_attn.q_proj", "model.layers.N.self_attn.k_proj",
                    "model.layers.N.self_attn.v_proj"}},
                  {"transformer.h.N.attn.c_proj", {"model.layers.N.self_attn.dense"}},
                  {"transformer.h.N.mlp.c_fc", {"model.layers.N.mlp.fc1"}},
                  {"transformer.h.N.mlp.c_proj", {"model.layers.N.mlp.fc2"}},
                  {"transformer.ln_f", {"model.final_layernorm"}},
                  {"lm_head", {"lm_head"}}},
      .buffers = {".rotary_emb.inv_freq"},
      .options = phi_options,
      .keys = phi_keys};
  return family;
}

}  // namespace model
