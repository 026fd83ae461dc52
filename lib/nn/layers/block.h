#pragma once
// One layer of a transformer: attention and feed-forward network, and between them attention over a
// source where there is one, each with a residual connection.

#include <memory>
#include <string>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/attention.h"
#include "nn/layers/cross_attention.h"
#include "nn/layers/layers.h"
#include "nn/ops/fused_block.h"

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

/// Parameters of a block's part that reads a source, as BlockWeights.
struct CrossWeights {
  torch::Tensor norm, norm_bias;        ///< (d)
  torch::Tensor query, query_bias;      ///< (d, d), (d)
  torch::Tensor project, project_bias;  ///< (d, d), (d)
};

/// pre-norm:  x += attn(ln_1(x)); x += mlp(ln_2(x))        (GPT-2)
/// post-norm: x = ln_1(x + attn(x)); x = ln_2(x + mlp(x))  (Vaswani et al. 2017)
/// One that reads sources has ln_x and cross between the two, in the same form: x += cross(ln_x(x)).
class Block : public torch::nn::Module {
 public:
  Block(const ShapeOptions& shape, const TransformerOptions& options, bool reads_source);
  /// x (B, T, d); `ffn_input`, if not null, receives what mlp reads (B, T, d).
  torch::Tensor forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                        const std::string& name, const SourceView& source,
                        torch::Tensor* ffn_input);

  bool reads_source() const { return cross_ != nullptr; }
  BlockWeights weights() const;
  /// These two only where it reads sources.
  CrossWeights cross_weights() const;
  const CrossAttention& cross() const { return *cross_; }

 private:
  /// The one place where the fused block is chosen over the modules, which stay its reference.
  bool fuses(const torch::Tensor& x, const Sight& sight, const KvCache& cache,
             const SourceView& source) const;
  torch::Tensor forward_fused(const torch::Tensor& x, torch::Tensor* ffn_input) const;

  bool pre_norm_;
  Activation activation_;
  std::int64_t heads_;
  double dropout_;
  /// The larger of those on attention weights and inside the feed-forward network.
  double inner_dropout_;
  std::shared_ptr<LayerNorm> ln_1_, ln_x_, ln_2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<CrossAttention> cross_;
  std::shared_ptr<FeedForward> mlp_;
};

}  // namespace nn
