#include "model/families/family.h"

namespace model {

// GPT-NeoX and Pythia: norms before both sub-layers, which run in parallel, and partial rotary
// positions. The fused matrix holds queries, keys and values head by head.
void neox_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  bool parallel = transformer.norm == "parallel", biased = transformer.has_bias("qkv");
  size_keys(pairs, options);
  if (pairs.from != nullptr) head_width_key(pairs, options, row);
  inner_key(pairs, options, row.width_key);
  pairs.activation(row.activation_key, transformer.activation, row.activation);
  pairs("layer_norm_eps", transformer.norm_epsilon, row.epsilon);
  pairs("max_position_embeddings", transformer.context, row.context);
  pairs("use_parallel_residual", parallel, true);
  pairs("attention_bias", biased, true);
  pairs("hidden_dropout", shape.dropout, 0);
  pairs("attention_dropout", shape.attention_dropout, 0);
  rope_keys(pairs, transformer, row);
  transformer.norm = parallel ? "parallel" : "pre";
  if (!biased) transformer.bias_of = {"feed-forward", "norm"};
}

// Phi 1 to 2: one norm before both sub-layers, which run in parallel, partial rotary positions, and
// biases everywhere, in the head too.
void phi_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  size_keys(pairs, options);
  kv_heads_key(pairs, options, row);
  inner_key(pairs, options, row.width_key);
  pairs.activation(row.activation_key, transformer.activation, row.activation);
  pairs("layer_norm_eps", transformer.norm_epsilon, row.epsilon);
  pairs("max_position_embeddings", transformer.context, row.context);
  pairs("resid_pdrop", shape.dropout, 0);
  pairs("attention_dropout", shape.attention_dropout, 0);
  pairs.fixed("qk_layernorm", false);
  const auto width = nn::head_shape(shape, transformer).width;
  if (pairs.from != nullptr || width * shape.heads != shape.d_model)
    head_width_key(pairs, options, row);
  rope_keys(pairs, transformer, row);
  if (pairs.to != nullptr) return;
  options.vocabulary.head_bias = true;
  transformer.norm = "parallel-one";
}

}  // namespace model
