// OPT: like GPT-2, with ReLU, matrices stored as (out, in), and a table of positions that begins
// with two rows for padding.

#include "model/families/family.h"

namespace model {

void opt_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  bool biased = transformer.has_bias("qkv");
  size_keys(pairs, options);
  inner_key(pairs, options, row.width_key);
  auto width = shape.d_model;
  pairs("word_embed_proj_dim", width, shape.d_model);
  pairs.activation("activation_function", transformer.activation, "relu");
  pairs.required("max_position_embeddings", transformer.context);
  pairs.fixed("do_layer_norm_before", true);
  pairs("enable_bias", biased, true);
  pairs("dropout", shape.dropout, .1);
  pairs("attention_dropout", shape.attention_dropout, 0);
  if (pairs.to != nullptr) return;
  if (!biased) transformer.bias_of = {"norm"};
  pairs.from->expect("_remove_final_layer_norm", false);
  pairs.from->expect("layer_norm_elementwise_affine", true);
  if (width != shape.d_model)
    pairs.from->unsupported("word_embed_proj_dim", "a width other than hidden_size");
}

}  // namespace model
