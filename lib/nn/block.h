#pragma once
// One layer of a transformer: attention and feed-forward network, each with a residual connection.

#include <memory>
#include <string>

#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/model_options.h"
#include "nn/torch.h"

namespace nn {

/// x (…, d) -> (…, d): c_proj(dropout(activation(c_fc(x)))).
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const ShapeOptions& shape, Activation activation, bool bias);
  torch::Tensor forward(const torch::Tensor& x);
  const Linear& c_fc() const { return *c_fc_; }
  const Linear& c_proj() const { return *c_proj_; }

 private:
  Activation activation_;
  double dropout_;
  std::shared_ptr<Linear> c_fc_, c_proj_;
};

/// pre-norm:  x += attn(ln_1(x)); x += mlp(ln_2(x))        (GPT-2)
/// post-norm: x = ln_1(x + attn(x)); x = ln_2(x + mlp(x))  (Vaswani et al. 2017)
class Block : public torch::nn::Module {
 public:
  Block(const ShapeOptions& shape, const TransformerOptions& options);
  /// x (B, T, d); `ffn_input`, if not null, receives what mlp reads (B, T, d).
  torch::Tensor forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                        const std::string& name, torch::Tensor* ffn_input);

 private:
  /// The one place where the fused block is chosen over the modules, which stay its reference.
  bool fuses(const torch::Tensor& x, const Sight& sight, const KvCache& cache) const;
  torch::Tensor forward_fused(const torch::Tensor& x, torch::Tensor* ffn_input) const;

  bool pre_norm_;
  Activation activation_;
  std::int64_t heads_;
  double dropout_, inner_dropout_;  // inner: on attention weights or inside the FFN
  std::shared_ptr<LayerNorm> ln_1_, ln_2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<FeedForward> mlp_;
};

}  // namespace nn
