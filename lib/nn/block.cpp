#include "nn/block.h"

namespace nn {

FeedForward::FeedForward(const ShapeOptions& shape, Activation activation, bool bias)
    : activation_(activation), dropout_(shape.activation_dropout) {
  const auto d_ff = shape.ffn_width();
  c_fc_ = register_module("c_fc", std::make_shared<Linear>(shape.d_model, d_ff, bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_ff, shape.d_model, bias));
}

torch::Tensor FeedForward::forward(const torch::Tensor& x) {
  const auto inner = activate(c_fc_->forward(x), activation_);
  return c_proj_->forward(dropped(inner, dropout_, is_training()));
}

Block::Block(const ShapeOptions& shape, const TransformerOptions& options)
    : pre_norm_(options.norm == "pre"), dropout_(shape.dropout) {
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape.d_model, options.norm_epsilon, options.bias);
  };
  ln_1_ = register_module("ln_1", norm());
  attn_ =
      register_module("attn", std::make_shared<Attention>(shape.d_model, shape.heads, options.bias,
                                                          shape.attention_dropout));
  ln_2_ = register_module("ln_2", norm());
  mlp_ = register_module("mlp", std::make_shared<FeedForward>(
                                    shape, parse_activation(options.activation), options.bias));
}

torch::Tensor Block::forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                             const std::string& name, torch::Tensor* ffn_input) {
  const auto drop = [&](const torch::Tensor& y) { return dropped(y, dropout_, is_training()); };
  const auto attended = pre_norm_ ? ln_1_->forward(x) : x;
  x = x + drop(attn_->forward(attended, sight, cache, name));
  if (!pre_norm_) x = ln_1_->forward(x);
  const auto fed = pre_norm_ ? ln_2_->forward(x) : x;
  if (ffn_input != nullptr) *ffn_input = fed;
  x = x + drop(mlp_->forward(fed));
  return pre_norm_ ? x : ln_2_->forward(x);
}

}  // namespace nn
