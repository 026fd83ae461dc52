#include "nn/layers/block.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <mutex>

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

Block::Block(const ShapeOptions& shape, const TransformerOptions& options, bool reads_source)
    : pre_norm_(options.norm == "pre"),
      activation_(parse_activation(options.activation)),
      heads_(shape.heads),
      dropout_(shape.dropout),
      inner_dropout_(std::max(shape.attention_dropout, shape.activation_dropout)) {
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape.d_model, options.norm_epsilon, options.bias);
  };
  ln_1_ = register_module("ln_1", norm());
  attn_ =
      register_module("attn", std::make_shared<Attention>(shape.d_model, shape.heads, options.bias,
                                                          shape.attention_dropout));
  if (reads_source) {
    ln_x_ = register_module("ln_x", norm());
    cross_ = register_module(
        "cross", std::make_shared<CrossAttention>(shape.d_model, shape.heads, options.bias,
                                                  shape.attention_dropout));
  }
  ln_2_ = register_module("ln_2", norm());
  mlp_ = register_module("mlp", std::make_shared<FeedForward>(shape, activation_, options.bias));
}

torch::Tensor Block::forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                             const std::string& name, const SourceView& source,
                             torch::Tensor* ffn_input) {
  if (fuses(x, sight, cache, source)) return forward_fused(x, ffn_input);
  const auto drop = [this](const torch::Tensor& y) { return dropped(y, dropout_, is_training()); };
  const auto before = [this](const LayerNorm& norm, const torch::Tensor& y) {
    return pre_norm_ ? norm.forward(y) : y;
  };
  const auto after = [this](const LayerNorm& norm, const torch::Tensor& y) {
    return pre_norm_ ? y : norm.forward(y);
  };
  x = after(*ln_1_, x + drop(attn_->forward(before(*ln_1_, x), sight, cache, name)));
  if (source.entries != nullptr)
    x = x +
        drop(cross_->forward(before(*ln_x_, x), *source.entries, *source.sight, source.present));
  if (cross_) x = after(*ln_x_, x);
  const auto fed = before(*ln_2_, x);
  if (ffn_input != nullptr) *ffn_input = fed;
  return after(*ln_2_, x + drop(mlp_->forward(fed)));
}

// A block that could read a source, but has none before it, is as any other.
bool Block::fuses(const torch::Tensor& x, const Sight& sight, const KvCache& cache,
                  const SourceView& source) const {
  const bool plain_attention =
      sight.causal && !sight.mask.defined() && !sight.rotation && sight.watch == nullptr;
  const bool drops_inside = is_training() && inner_dropout_ > 0;
  return pre_norm_ && plain_attention && source.entries == nullptr && !cache.keeps() &&
         !drops_inside && activation_ != Activation::gelu_exact && fused_block_fits(x);
}

BlockWeights Block::weights() const {
  const Linear &qkv = attn_->c_attn(), &project = attn_->c_proj();
  const Linear &expand = mlp_->c_fc(), &reduce = mlp_->c_proj();
  return {ln_1_->weight, ln_1_->bias, qkv.weight,    qkv.bias,    project.weight, project.bias,
          ln_2_->weight, ln_2_->bias, expand.weight, expand.bias, reduce.weight,  reduce.bias};
}

CrossWeights Block::cross_weights() const {
  const Linear &query = cross_->c_q(), &project = cross_->c_proj();
  return {ln_x_->weight, ln_x_->bias, query.weight, query.bias, project.weight, project.bias};
}

torch::Tensor Block::forward_fused(const torch::Tensor& x, torch::Tensor* ffn_input) const {
  BlockShape shape;
  shape.heads = heads_;
  shape.gelu = activation_ == Activation::gelu;
  shape.norm_epsilon = ln_1_->epsilon();
  if (is_training() && dropout_ > 0) {
    shape.residual_dropout = dropout_;
    auto generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    shape.seed = at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
  }
  const BlockOutput out = fused_block(x, weights(), shape, ffn_input != nullptr);
  if (ffn_input != nullptr) *ffn_input = out.ffn_input;
  return out.y;
}

}  // namespace nn
