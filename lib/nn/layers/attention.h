#pragma once
// Causal multi-head self-attention: the plain reference for faster implementations.
// Sliding-window attention over long rows, without a mask quadratic in their length.

#include "nn/base/attention_callback.h"
#include "nn/layers/kv_cache.h"
#include "nn/layers/layers.h"
#include "nn/layers/positions.h"

namespace nn {

/// Visibility for the queries of one call, common to all layers.
struct Visibility {
  /// Mask added to the scores: (B or 1, heads or 1, T, S); hidden pairs have the finite value
  /// kHidden. Undefined: no mask, or the causal mask if `causal`.
  torch::Tensor mask;
  bool causal = false;
  std::optional<Rotation> rotation;
  const AttentionCallback* watch = nullptr;
};

inline constexpr double kHidden = -1e30;

/// Returns the visibility of a call: real tokens see themselves and the valid slots before them, at
/// most `window` tokens (0: unlimited); padding sees only itself and is never visible to other
/// tokens. `options`: type and device of the queries. The caller sets rotations.
Visibility make_visibility(const KvCache& cache, Positions positions, std::int64_t heads,
    std::int64_t window, const torch::TensorOptions& options);

/// Returns the visibility for keys in a ring, computed on its device.
Visibility make_visibility(const KvRing& ring, Positions positions, std::int64_t heads,
    std::int64_t window, const torch::TensorOptions& options);

/// Returns the mask of `visible` (B or 1, T, S) pairs. With ALiBi's `slopes` (1, heads, 1, 1),
/// visible pairs get -slope times their `distance`, broadcast to the mask's shape.
torch::Tensor visibility_mask(const torch::Tensor& visible, const torch::Tensor& slopes,
    const torch::Tensor& distance, const torch::TensorOptions& options);

/// Transformation of query-key products.
struct Scores {
  double scale = 0;  ///< 0: 1 / sqrt(width)
  double cap = 0;    ///< softcap c: s becomes c tanh(s / c); 0: none
  double scale_of(std::int64_t width) const;
  /// Returns the scores of q and k, before the mask.
  torch::Tensor operator()(const torch::Tensor& q, const torch::Tensor& k) const;
};

/// Computes softmax(scores(q k^T) + mask) v, with dropout on the weights: q (B, heads, T, width), k
/// and v (B, heads, S, width) -> (B, heads, T, width). A query without visible keys gets 0.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
    const Visibility& visibility, double dropout, const Scores& scores = {});

/// x (B, T, d) -> (B, T, d). Submodules have GPT-2's names: c_attn (queries, keys, values), c_proj;
/// and q_norm, k_norm if present. With fewer key-value heads than query heads, consecutive query
/// heads share one (Ainslie et al. 2023).
class Attention : public torch::nn::Module {
 public:
  Attention(const ShapeOptions& shape, const TransformerOptions& options);
  /// `name` is the prefix of this layer's keys and values in the State.
  torch::Tensor forward(const torch::Tensor& x, const Visibility& visibility, KeyValues& cache,
      const std::string& name);
  const Linear& c_attn() const { return *c_attn_; }
  const Linear& c_proj() const { return *c_proj_; }

  double scale() const { return scores_.scale_of(heads_.width); }
  /// Return the norms; null: none.
  const LayerNorm* q_norm() const { return q_norm_.get(); }
  const LayerNorm* k_norm() const { return k_norm_.get(); }

 private:
  /// Splits y (B, T, n width) into (B, n, T, width), normalised if `norm` is not null.
  torch::Tensor split(const torch::Tensor& y, const LayerNorm* norm) const;

  HeadShape heads_;
  Scores scores_;
  bool norm_of_heads_;
  double dropout_;
  std::shared_ptr<Linear> c_attn_, c_proj_;
  std::shared_ptr<LayerNorm> q_norm_, k_norm_;
};

/// Computes attention in which query i sees keys i - window + 1 to i: q, k, v (B, heads, T, width)
/// -> (B, heads, T, width). Equivalent to attend() with such a mask. Time and memory are
/// proportional to T window: blocks of `window` queries each read two blocks of keys.
torch::Tensor attend_band(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
    std::int64_t window, double dropout, const Scores& scores = {});

}  // namespace nn
