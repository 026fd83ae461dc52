// Mamba-2: layers of one norm and one mixer, whose input matrix has the rows z, x, B, C and dt in
// this order; one group of B and C.

#include "model/families/family.h"

namespace model {

void mamba2_keys(const KeyPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& convolution = options.gla.convolution;
  pairs.required("hidden_size", shape.d_model);
  pairs.required("num_hidden_layers", shape.layers);
  pairs.size("num_heads", shape.heads, 128);
  auto head = pairs.to != nullptr ? options.mamba2.width(shape.d_model) / shape.heads : 0;
  pairs.size("head_dim", head, 64);
  pairs.size("state_size", options.mamba2.state, 128);
  pairs.size("expand", options.mamba2.expand, 2);
  pairs.size("conv_kernel", convolution, 4);
  std::int64_t groups = 1;
  pairs("n_groups", groups, 8);
  pairs("layer_norm_epsilon", options.transformer.norm_epsilon, 1e-5);
  if (pairs.to != nullptr) return;
  const ConfigKeys& keys = *pairs.from;
  expect_bounded(options, keys.origin());
  const auto width = options.mamba2.width(shape.d_model);
  if (width % shape.heads != 0 || head != width / shape.heads)
    keys.unsupported("head_dim", "a width other than expand * hidden_size / num_heads");
  if (groups != 1) keys.unsupported("n_groups", "a number other than 1");
  if (convolution < 2) keys.unsupported("conv_kernel", "a number below 2");
  // [0, infinity] is no limit. Infinity is read as 9e307 (core::read_json), or as the object that
  // transformers 5 writes for it.
  const auto limit = keys.value("time_step_limit");
  if (!limit.is_null() && (!limit.is_array() || limit.size() != 2 || limit[0] != 0 ||
                              !(limit[1].is_object() || limit[1] == 9e307)))
    keys.unsupported("time_step_limit", core::dump(limit));
  keys.expect("use_bias", false);
  keys.expect("use_conv_bias", true);
  if (keys.activation("hidden_act", row.activation) != "silu")
    keys.unsupported("hidden_act", "a function other than silu");
  shape.dropout = 0;
}

}  // namespace model
