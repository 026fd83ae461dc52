// GPT-2: learned positions, norms before each sub-layer, biases everywhere, matrices stored as (in,
// out).

#include "model/families/family.h"

namespace model {

void gpt2_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& /*row*/) {
  auto& shape = options.shape;
  auto& transformer = options.transformer;
  pairs.required("n_positions", transformer.context);
  pairs.required("n_embd", shape.d_model);
  pairs.required("n_layer", shape.layers);
  pairs.required("n_head", shape.heads);
  inner_key(pairs, options, "n_inner", false);
  pairs.activation("activation_function", transformer.activation, "gelu_new");
  pairs("layer_norm_epsilon", transformer.norm_epsilon, 1e-5);
  pairs("resid_pdrop", shape.dropout, .1);
  if (pairs.to != nullptr) (*pairs.to)["embd_pdrop"] = shape.dropout;
  pairs("attn_pdrop", shape.attention_dropout, .1);
  if (pairs.to != nullptr) return;
  pairs.from->expect("scale_attn_weights", true);
  pairs.from->expect("scale_attn_by_inverse_layer_idx", false);
  pairs.from->expect("add_cross_attention", false);
}

}  // namespace model
