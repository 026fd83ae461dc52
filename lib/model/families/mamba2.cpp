// Mamba-2: layers of one norm and one mixer, whose input matrix has the rows z, x, B, C and dt in
// this order; one group of B and C.

#include "model/families/family.h"

namespace model {
namespace {

nn::ModelOptions mamba2_options(const ConfigKeys& keys, const ClassRow& row) {
  nn::ModelOptions options;
  auto& shape = options.shape;
  shape.d_model = keys.required("hidden_size");
  shape.layers = keys.required("num_hidden_layers");
  shape.heads = keys.size("num_heads", 128);
  options.mamba2.state = keys.size("state_size", 128);
  options.mamba2.expand = keys.size("expand", 2);
  options.gla.convolution = keys.size("conv_kernel", 4);
  expect_bounded(options, keys.origin());
  const auto width = options.mamba2.width(shape.d_model);
  if (width % shape.heads != 0 || keys.size("head_dim", 64) != width / shape.heads)
    keys.unsupported("head_dim", "a width other than expand * hidden_size / num_heads");
  if (keys.whole("n_groups", 8) != 1) keys.unsupported("n_groups", "a number other than 1");
  if (options.gla.convolution < 2) keys.unsupported("conv_kernel", "a number below 2");
  // [0, infinity] is no limit. Infinity is read as 9e307 (core::read_json), or as the object that
  // transformers 5 writes for it.
  const auto limit = keys.value("time_step_limit");
  if (!limit.is_null() && (!limit.is_array() || limit.size() != 2 || limit[0] != 0 ||
                              !(limit[1].is_object() || limit[1] == 9e307)))
    keys.unsupported("time_step_limit", core::dump(limit));
  keys.expect("use_bias", false, false);
  keys.expect("use_conv_bias", true, true);
  if (keys.activation("hidden_act", row.activation) != "silu")
    keys.unsupported("hidden_act", "a function other than silu");
  shape.dropout = 0;
  options.vocabulary.scale_embedding = false;
  options.vocabulary.tied = keys.truth("tie_word_embeddings", row.tied);
  options.transformer.norm_epsilon = keys.number("layer_norm_epsilon", 1e-5);
  return options;
}

void mamba2_keys(
    const nn::ModelOptions& options, const ClassRow& /*row*/, core::OrderedJson& config) {
  const auto& shape = options.shape;
  config["hidden_size"] = shape.d_model;
  config["num_hidden_layers"] = shape.layers;
  config["num_heads"] = shape.heads;
  config["head_dim"] = options.mamba2.width(shape.d_model) / shape.heads;
  config["state_size"] = options.mamba2.state;
  config["expand"] = options.mamba2.expand;
  config["conv_kernel"] = options.gla.convolution;
  config["n_groups"] = 1;
  config["layer_norm_epsilon"] = options.transformer.norm_epsilon;
}

}  // namespace

const Family& mamba2_family() {
  static const Family family{.row = class_row("mamba2"),
      .base = "backbone.",
      .modules = {{"mamba2.wte", {"backbone.embeddings"}},
          {"mamba2.h.N.ln_1", {"backbone.layers.N.norm"}},
          {"mamba2.h.N.mixer.a_log", {"backbone.layers.N.mixer.A_log"}},
          {"mamba2.h.N.mixer.a_bias", {"backbone.layers.N.mixer.dt_bias"}},
          {"mamba2.h.N.mixer.skip", {"backbone.layers.N.mixer.D"}},
          {"mamba2.h.N.mixer.c_in", {"backbone.layers.N.mixer.in_proj"}},
          {"mamba2.h.N.mixer.convolution", {"backbone.layers.N.mixer.conv1d"}, Layout::taps},
          {"mamba2.h.N.mixer.norm", {"backbone.layers.N.mixer.norm"}},
          {"mamba2.h.N.mixer.c_proj", {"backbone.layers.N.mixer.out_proj"}},
          {"mamba2.ln_f", {"backbone.norm_f"}}, {"lm_head", {"lm_head"}}},
      .buffers = {},
      .options = mamba2_options,
      .keys = mamba2_keys,
      .arch = "mamba2"};
  return family;
}

}  // namespace model
