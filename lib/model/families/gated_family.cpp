#include "model/families/gated_family.h"

#include "model/families/rope_keys.h"

namespace model {

nn::ModelOptions gated_options(const ConfigKeys& keys, const GatedDefaults& defaults) {
  auto options = sized(keys, defaults.width_key);
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  shape.dropout = 0;
  shape.attention_dropout = keys.number("attention_dropout", 0);
  options.vocabulary.tied = keys.truth("tie_word_embeddings", defaults.tied);
  const auto kv_heads = keys.size("num_key_value_heads", shape.heads);
  transformer.kv_heads = kv_heads == shape.heads ? 0 : kv_heads;
  const auto width = keys.size("head_dim", defaults.d_head);
  const bool usual = shape.d_model % shape.heads == 0 && width == shape.d_model / shape.heads;
  transformer.d_head = usual ? 0 : width;
  transformer.context = keys.whole("max_position_embeddings", defaults.context);
  transformer.positions = "rope";
  transformer.norm_kind = "rms";
  transformer.norm_epsilon = keys.number("rms_norm_eps", defaults.epsilon);
  transformer.feed_forward = "gated";
  transformer.activation = keys.activation(defaults.activation_key, defaults.activation);
  transformer.bias = false;
  transformer.rope = rope_of(keys, transformer.context);
  return options;
}

void put_gated(const nn::ModelOptions& options, core::OrderedJson& config,
               const GatedDefaults& defaults) {
  const auto& shape = options.shape;
  const auto& transformer = options.transformer;
  const auto heads = nn::head_shape(shape, transformer);
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = heads.kv_heads;
  config["head_dim"] = heads.width;
  config[defaults.width_key] = shape.ffn_width();
  config[defaults.activation_key] = their_activation(transformer.activation);
  config["rms_norm_eps"] = transformer.norm_epsilon;
  config["max_position_embeddings"] = transformer.context;
  config["attention_dropout"] = shape.attention_dropout;
  put_rope(transformer.rope, config);
}

void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds) {
  options.transformer.bias = !kinds.empty();
  options.transformer.bias_of = std::move(kinds);
}

std::vector<ModuleNames> gated_modules(std::string_view norm1, std::string_view norm2) {
  return {
      {"transformer.wte", {"model.embed_tokens"}},
      {"transformer.h.N.ln_1", {norm1}},
      {"transformer.h.N.attn.c_attn",
       {"model.layers.N.self_attn.q_proj", "model.layers.N.self_attn.k_proj",
        "model.layers.N.self_attn.v_proj"}},
      {"transformer.h.N.attn.q_norm", {"model.layers.N.self_attn.q_norm"}},
      {"transformer.h.N.attn.k_norm", {"model.layers.N.self_attn.k_norm"}},
      {"transformer.h.N.attn.c_proj", {"model.layers.N.self_attn.o_proj"}},
      {"transformer.h.N.ln_2", {norm2}},
      {"transformer.h.N.mlp.c_fc", {"model.layers.N.mlp.gate_proj", "model.layers.N.mlp.up_proj"}},
      {"transformer.h.N.mlp.c_proj", {"model.layers.N.mlp.down_proj"}},
      {"transformer.ln_f", {"model.norm"}},
      {"lm_head", {"lm_head"}}};
}

Family gated_family(std::string_view type, std::string_view architecture,
                    nn::ModelOptions (*options)(const ConfigKeys&),
                    void (*keys)(const nn::ModelOptions&, core::OrderedJson&)) {
  return {.type = type,
          .architecture = architecture,
          .base = "model.",
          .modules = gated_modules("model.layers.N.input_layernorm",
                                   "model.layers.N.post_attention_layernorm"),
          .buffers = {".rotary_emb.inv_freq"},
          .options = options,
          .keys = keys};
}

}  // namespace model
