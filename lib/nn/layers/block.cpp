#include "nn/layers/block.h"

#include "nn/ops/tiled_attend.h"

namespace nn {
namespace {

constexpr const char* kParallelOne = "parallel-one";

}  // namespace

CrossAttention::CrossAttention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout)
    : heads_(heads), dropout_(dropout) {
  c_q_ = register_module("c_q", std::make_shared<Linear>(d_model, d_model, bias));
  c_kv_ = register_module("c_kv", std::make_shared<Linear>(d_model, 2 * d_model, bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_model, d_model, bias));
}

SourceEntries CrossAttention::entries(const torch::Tensor& source) const {
  const auto rows = source.size(0), places = source.size(1), d = source.size(2);
  const auto split = c_kv_->forward(source)
                         .view({rows, places, 2, heads_, d / heads_})
                         .permute({2, 0, 3, 1, 4})
                         .contiguous();
  return {split[0], split[1]};
}

torch::Tensor CrossAttention::forward(const torch::Tensor& x, const SourceEntries& entries,
    const Visibility& visibility, const torch::Tensor& present) {
  const auto rows = x.size(0), steps = x.size(1), d = x.size(2);
  const auto q = c_q_->forward(x).view({rows, steps, heads_, d / heads_}).transpose(1, 2);
  const auto out =
      attend(q, entries.keys, entries.values, visibility, is_training() ? dropout_ : 0.0);
  return c_proj_->forward(out.transpose(1, 2).reshape({rows, steps, d})) * present;
}

NormPlacement parse_norm_placement(const std::string& name) {
  if (name == "pre") return NormPlacement::pre;
  if (name == "post") return NormPlacement::post;
  if (name == "sublayer") return NormPlacement::sublayer;
  if (name == "sandwich") return NormPlacement::sandwich;
  if (name == "parallel" || name == kParallelOne) return NormPlacement::parallel;
  core::bad_config(
      "norm: takes pre, post, sublayer, sandwich, parallel or parallel-one, not '{}'", name);
}

Block::Block(const ShapeOptions& shape, const TransformerOptions& options, bool reads_source,
    const BlockNetwork& instead)
    : place_(parse_norm_placement(options.norm)), activation_(parse_activation(options.activation)),
      heads_(head_shape(shape, options)), dropout_(shape.dropout),
      attention_dropout_(shape.attention_dropout), activation_dropout_(shape.activation_dropout) {
  const auto kind = parse_norm_kind(options.norm_kind);
  const bool gated = options.feed_forward == "gated";
  rms_ = kind != NormKind::layer;
  plain_ = place_ == NormPlacement::pre && activation_ != Activation::gelu_exact &&
           options.qk_norm == "none" && options.attention_softcap == 0;
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<LayerNorm>(shape.d_model, options.norm_epsilon,
                                     options.has_bias("norm"), kind));
  };
  ln_1_ = norm("ln_1");
  attn_ = register_module("attn", std::make_shared<Attention>(shape, options));
  if (place_ == NormPlacement::sandwich) ln_1_out_ = norm("ln_1_out");
  if (reads_source) {
    ln_x_ = norm("ln_x");
    cross_ = register_module("cross", std::make_shared<CrossAttention>(shape.d_model, shape.heads,
                                          options.bias, shape.attention_dropout));
  }
  ln_2_ = options.norm == kParallelOne ? ln_1_ : norm("ln_2");
  if (instead.network == nullptr)
    mlp_ =
        std::make_shared<FeedForward>(shape, activation_, options.has_bias("feed-forward"), gated);
  second_ = register_module(instead.name, mlp_ != nullptr ? mlp_ : instead.network);
  if (place_ == NormPlacement::sandwich) ln_2_out_ = norm("ln_2_out");
}

torch::Tensor Block::in(const LayerNorm& norm, const torch::Tensor& x) const {
  const bool there = place_ != NormPlacement::post && place_ != NormPlacement::sublayer;
  return there ? norm.forward(x) : x;
}

torch::Tensor Block::out(
    const LayerNorm& norm, const std::shared_ptr<LayerNorm>& second, const torch::Tensor& y) const {
  const auto& normed = second                              ? second->forward(y)
                       : place_ == NormPlacement::sublayer ? norm.forward(y)
                                                           : y;
  return dropped(normed, dropout_, is_training());
}

torch::Tensor Block::forward(torch::Tensor x, const Visibility& visibility, KeyValues& cache,
    const std::string& name, const SourceView& source, torch::Tensor* ffn_input) {
  if (fuses(x, visibility, cache, source)) return forward_fused(x, visibility, ffn_input);
  const auto after = [this](const LayerNorm& norm, const torch::Tensor& y) {
    return place_ == NormPlacement::post ? norm.forward(y) : y;
  };
  const auto attended =
      out(*ln_1_, ln_1_out_, attn_->forward(in(*ln_1_, x), visibility, cache, name));
  if (place_ == NormPlacement::parallel) {
    const auto read = in(*ln_2_, x);
    if (ffn_input != nullptr) *ffn_input = read;
    return x + attended + out(*ln_2_, ln_2_out_, second_->forward(read));
  }
  x = after(*ln_1_, x + attended);
  if (source.entries != nullptr)
    x = x +
        dropped(cross_->forward(in(*ln_x_, x), *source.entries, *source.visibility, source.present),
            dropout_, is_training());
  if (cross_) x = after(*ln_x_, x);
  const auto read = in(*ln_2_, x);
  if (ffn_input != nullptr) *ffn_input = read;
  return after(*ln_2_, x + out(*ln_2_, ln_2_out_, second_->forward(read)));
}

// A block that can read a source behaves like any other block if there is no source.
bool Block::fuses(const torch::Tensor& x, const Visibility& visibility, const KeyValues& cache,
    const SourceView& source) const {
  const bool plain_attention =
      visibility.causal && !visibility.mask.defined() && visibility.watch == nullptr;
  const bool drops_inside = is_training() && activation_dropout_ > 0;
  return plain_ && plain_attention && source.entries == nullptr && !cache.keeps() && has_mlp() &&
         !drops_inside && fused_block_fits(x);
}

BlockWeights Block::weights() const {
  const Linear &qkv = attn_->c_attn(), &project = attn_->c_proj();
  const Linear &expand = mlp_->c_fc(), &reduce = mlp_->c_proj();
  return {ln_1_->factors(), ln_1_->bias, qkv.weight, qkv.bias, project.weight, project.bias,
      ln_2_->factors(), ln_2_->bias, expand.weight, expand.bias, reduce.weight, reduce.bias};
}

CrossWeights Block::cross_weights() const {
  const Linear &query = cross_->c_q(), &project = cross_->c_proj();
  return {ln_x_->factors(), ln_x_->bias, query.weight, query.bias, project.weight, project.bias};
}

torch::Tensor Block::forward_fused(
    const torch::Tensor& x, const Visibility& visibility, torch::Tensor* ffn_input) const {
  BlockShape shape;
  shape.heads = heads_;
  shape.attention_scale = attn_->scale();
  shape.activation = activation_ == Activation::gelu   ? InnerActivation::gelu
                     : activation_ == Activation::relu ? InnerActivation::relu
                                                       : InnerActivation::silu;
  shape.gated = gated();
  shape.rms = rms_;
  if (visibility.rotation)
    shape.cos = visibility.rotation->cos, shape.sin = visibility.rotation->sin;
  shape.norm_epsilon = ln_1_->epsilon();
  if (is_training() && (dropout_ > 0 || attention_dropout_ > 0)) {
    shape.residual_dropout = dropout_;
    shape.attention_dropout = attention_dropout_;
    shape.seed = draw_seed();
  }
  const BlockOutput out = fused_block(x, weights(), shape, ffn_input != nullptr);
  if (ffn_input != nullptr) *ffn_input = out.ffn_input;
  return out.y;
}

}  // namespace nn
