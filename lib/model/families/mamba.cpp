// Mamba and Mamba-2: layers of one norm and one mixer. The input matrix of Mamba-2 has the rows z,
// x, B, C and dt in this order; one group of B and C.

#include "model/families/family.h"

namespace model {
namespace {

void common_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& convolution = options.gla.convolution;
  pairs.required("hidden_size", options.shape.d_model);
  pairs.required("num_hidden_layers", options.shape.layers);
  pairs.size("expand", options.mamba2.expand, 2);
  pairs.size("conv_kernel", convolution, 4);
  pairs("layer_norm_epsilon", options.transformer.norm_epsilon, 1e-5);
  if (pairs.to != nullptr) return;
  const ConfigKeys& keys = *pairs.from;
  if (convolution < 2) keys.unsupported("conv_kernel", "a number below 2");
  keys.expect("use_bias", false);
  keys.expect("use_conv_bias", true);
  if (keys.activation("hidden_act", row.activation) != "silu")
    keys.unsupported("hidden_act", "a function other than silu");
  options.shape.dropout = 0;
}

}  // namespace

void mamba_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  common_keys(pairs, options, row);
  pairs.size("state_size", options.mixers.state, 16);
  const auto d = options.shape.d_model;
  if (pairs.to == nullptr) expect_bounded(options, pairs.from->origin());
  auto width = options.mamba2.width(d), rank = (d + 15) / 16;
  pairs.size("intermediate_size", width, width);  // the class asks it before "expand"
  if (pairs.to != nullptr) {
    pairs("time_step_rank", rank, 0);
    return;
  }
  const ConfigKeys& keys = *pairs.from;
  if (width % d != 0) keys.unsupported("intermediate_size", "no multiple of hidden_size");
  options.mamba2.expand = width / d;
  const auto given = keys.value("time_step_rank");
  if (!given.is_null() && given != "auto" && given != rank)
    keys.unsupported("time_step_rank", core::dump(given));
}

void mamba2_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  common_keys(pairs, options, row);
  auto& shape = options.shape;
  pairs.size("num_heads", shape.heads, 128);
  auto head = pairs.to != nullptr ? options.mamba2.width(shape.d_model) / shape.heads : 0;
  pairs.size("head_dim", head, 64);
  pairs.size("state_size", options.mamba2.state, 128);
  std::int64_t groups = 1;
  pairs("n_groups", groups, 8);
  if (pairs.to != nullptr) return;
  const ConfigKeys& keys = *pairs.from;
  expect_bounded(options, keys.origin());
  const auto width = options.mamba2.width(shape.d_model);
  if (width % shape.heads != 0 || head != width / shape.heads)
    keys.unsupported("head_dim", "a width other than expand * hidden_size / num_heads");
  if (groups != 1) keys.unsupported("n_groups", "a number other than 1");
  // [0, infinity] is no limit. Infinity is read as 9e307 (core::read_json), or as the object that
  // transformers 5 writes for it.
  const auto limit = keys.value("time_step_limit");
  if (!limit.is_null() && (!limit.is_array() || limit.size() != 2 || limit[0] != 0 ||
                              !(limit[1].is_object() || limit[1] == 9e307)))
    keys.unsupported("time_step_limit", core::dump(limit));
}

}  // namespace model
