#include "nn/layers/feed_forward.h"

namespace nn {

torch::Tensor Inner::of(const torch::Tensor& x, bool training) const {
  if (!gated) return dropped(activate(x, activation), dropout, training);
  const auto halves = x.chunk(2, -1);
  return dropped(activate(halves[0], activation) * halves[1], dropout, training);
}

FeedForward::FeedForward(const ShapeOptions& shape, Activation activation, bool bias, bool gated)
    : inner_{activation, gated, shape.activation_dropout} {
  const auto d_ff = shape.ffn_width();
  c_fc_ = register_module("c_fc", std::make_shared<Linear>(shape.d_model, inner_.wide(d_ff), bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_ff, shape.d_model, bias));
}

torch::Tensor FeedForward::forward(const torch::Tensor& x) const {
  return c_proj_->forward(inner_.of(c_fc_->forward(x), is_training()));
}

}  // namespace nn
