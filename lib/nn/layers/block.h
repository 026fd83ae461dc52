#pragma once
// One layer of a transformer: attention, optional cross-attention over a source, and feed-forward
// network, each with a residual connection.
// Cross-attention of a decoder over an encoder's output.

#include "nn/layers/attention.h"
#include "nn/ops/fused_block.h"

namespace nn {

/// Keys and values of a source, (B, heads, S, width) each.
struct SourceEntries {
  torch::Tensor keys, values;
};

/// Sources visible to a layer's rows; `entries` null: none.
struct SourceView {
  const SourceEntries* entries = nullptr;
  /// Mask that hides padding.
  const Visibility* visibility = nullptr;
  /// (B, 1, 1), in the type of the hidden vectors: 0 for rows without a source, else 1.
  torch::Tensor present;
};

/// Computes softmax(q k^T / sqrt(width)) v with q = c_q(x), and keys and values from c_kv(source)
/// (Vaswani et al. 2017, section 3.2.3). `bias` applies to all matrices.
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout);
  /// Returns the keys and values of source (B, S, d).
  SourceEntries entries(const torch::Tensor& source) const;
  /// x (B, T, d) -> (B, T, d). `visibility` hides padding; `present` (B, 1, 1) is 0 or 1, in
  /// the type of x: rows without a source get 0.
  torch::Tensor forward(const torch::Tensor& x, const SourceEntries& entries,
      const Visibility& visibility, const torch::Tensor& present);
  const Linear& c_q() const { return *c_q_; }
  const Linear& c_proj() const { return *c_proj_; }

 private:
  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> c_q_, c_kv_, c_proj_;
};

enum class NormPlacement { pre, post, sublayer, sandwich, parallel };
/// Parses the name. Throws Error{bad_config}.
NormPlacement parse_norm_placement(const std::string& name);

/// Parameters of a block's cross-attention, as in BlockWeights.
struct CrossWeights {
  torch::Tensor norm, norm_bias;        ///< (d)
  torch::Tensor query, query_bias;      ///< (d, d), (d)
  torch::Tensor project, project_bias;  ///< (d, d), (d)
};

/// The network of a block's second sub-layer and its submodule's name. Null: a feed-forward
/// network, "mlp".
struct BlockNetwork {
  const char* name = "mlp";
  std::shared_ptr<TokenNetwork> network;
};

///  pre:       x += attn(ln_1(x)); x += mlp(ln_2(x))                  (GPT-2)
///  post:      x = ln_1(x + attn(x)); x = ln_2(x + mlp(x))            (Vaswani et al. 2017)
///  sublayer:  x += ln_1(attn(x)); x += ln_2(mlp(x))                  (OLMo 2)
///  sandwich:  x += ln_1_out(attn(ln_1(x))); x += ln_2_out(mlp(ln_2(x)))  (Gemma 2)
///  parallel:  x += attn(ln_1(x)) + mlp(ln_2(x))                      (GPT-NeoX); if ln_2 is ln_1,
///             "parallel-one"                                        (GPT-J, Phi)
/// A block that reads sources (pre or post) has ln_x and cross between the two, in the same form: x
/// += cross(ln_x(x)). A network in place of mlp has mlp's form.
class Block : public torch::nn::Module {
 public:
  Block(const ShapeOptions& shape, const TransformerOptions& options, bool reads_source,
      const BlockNetwork& instead = {});
  /// x (B, T, d); `ffn_input`, if not null, receives the input of mlp (B, T, d).
  torch::Tensor forward(torch::Tensor x, const Visibility& visibility, KeyValues& cache,
      const std::string& name, const SourceView& source, torch::Tensor* ffn_input);

  /// Returns whether the block has a feed-forward network; else weights() and gated() are
  /// meaningless.
  bool has_mlp() const { return mlp_ != nullptr; }
  bool reads_source() const { return cross_ != nullptr; }
  BlockWeights weights() const;
  /// Returns whether the rows of expand are twice the inner width.
  bool gated() const { return mlp_->gated(); }
  const Attention& attention() const { return *attn_; }
  /// Return the output norms of NormPlacement::sandwich; else null.
  const LayerNorm* ln_1_out() const { return ln_1_out_.get(); }
  const LayerNorm* ln_2_out() const { return ln_2_out_.get(); }
  /// Both functions require reads_source().
  CrossWeights cross_weights() const;
  const CrossAttention& cross() const { return *cross_; }

 private:
  /// Returns whether to use the fused block instead of the modules, which remain its reference.
  bool fuses(const torch::Tensor& x, const Visibility& visibility, const KeyValues& cache,
      const SourceView& source) const;
  torch::Tensor forward_fused(
      const torch::Tensor& x, const Visibility& visibility, torch::Tensor* ffn_input) const;

  /// Apply a sub-layer's norm before (`in`) and after (`out`) it.
  torch::Tensor in(const LayerNorm& norm, const torch::Tensor& x) const;
  torch::Tensor out(const LayerNorm& norm, const std::shared_ptr<LayerNorm>& second,
      const torch::Tensor& y) const;

  NormPlacement place_;
  /// the fused block supports it
  bool plain_;
  Activation activation_;
  HeadShape heads_;
  bool rms_;
  double dropout_, attention_dropout_, activation_dropout_;
  std::shared_ptr<LayerNorm> ln_1_, ln_1_out_, ln_x_, ln_2_, ln_2_out_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<CrossAttention> cross_;
  std::shared_ptr<TokenNetwork> second_;
  std::shared_ptr<FeedForward> mlp_;  // second_, or null
};

}  // namespace nn
