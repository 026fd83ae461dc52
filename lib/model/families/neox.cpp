// GPT-NeoX and Pythia: norms before both sub-layers, which run in parallel, and partial rotary
// positions. The fused matrix holds queries, keys and values head by head.

#include "model/families/family.h"

namespace model {

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

}  // namespace model
