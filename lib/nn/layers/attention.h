#pragma once
// Causal self-attention with several heads: the plain reference that faster paths are measured
// against.

#include <memory>
#include <optional>
#include <string>

#include "nn/base/attention_watch.h"
#include "nn/base/torch.h"
#include "nn/layers/kv_cache.h"
#include "nn/layers/kv_ring.h"
#include "nn/layers/layers.h"
#include "nn/layers/positions.h"

namespace nn {

/// What the queries of one call may see, the same for all layers.
struct Sight {
  /// Added to the scores: (B or 1, heads or 1, T, S); hidden pairs get a finite kHidden. Undefined:
  /// no mask at all, or the plain triangle if `causal`.
  torch::Tensor mask;
  bool causal = false;
  std::optional<Rotation> rotation;
  const AttentionWatch* watch = nullptr;
};

inline constexpr double kHidden = -1e30;

/// Real tokens see themselves and the valid slots before them, of `window` tokens (0: any number)
/// the last; padding sees itself alone, and nobody sees it. `options`: type and device of the
/// queries. Rotations are the caller's.
Sight make_sight(const KvCache& cache, Positions positions, std::int64_t heads, std::int64_t window,
                 const torch::TensorOptions& options);

/// The same of tokens whose keys lie in a ring, from numbers on its device alone.
Sight make_sight(const KvRing& ring, Positions positions, std::int64_t heads, std::int64_t window,
                 const torch::TensorOptions& options);

/// The mask of `visible` (B or 1, T, S) pairs. With `slopes` (1, heads, 1, 1) of ALiBi, what is
/// visible gets minus them times its `distance`, broadcast to the same.
torch::Tensor sight_mask(const torch::Tensor& visible, const torch::Tensor& slopes,
                         const torch::Tensor& distance, const torch::TensorOptions& options);

/// What becomes of products of queries and keys.
struct Scores {
  double scale = 0;  ///< 0: 1 / sqrt(width)
  double cap = 0;    ///< c: then s becomes c tanh(s / c); 0: it stays
  double scale_of(std::int64_t width) const;
  /// Of q and k, before the mask.
  torch::Tensor operator()(const torch::Tensor& q, const torch::Tensor& k) const;
};

/// softmax(scores(q k^T) + mask) v, dropout on the weights: q (B, heads, T, width), k and v
/// (B, heads, S, width) -> (B, heads, T, width). A query that sees nothing gives 0.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     const Sight& sight, double dropout, const Scores& scores = {});

/// x (B, T, d) -> (B, T, d). Submodules as GPT-2's: c_attn (queries, keys, values), c_proj; and
/// q_norm, k_norm where there are such. With fewer heads of keys and values than of queries, each
/// is read by as many of those, in turn (Ainslie et al. 2023).
class Attention : public torch::nn::Module {
 public:
  Attention(const ShapeOptions& shape, const TransformerOptions& options);
  /// `name` is the prefix of this layer's keys and values in the State.
  torch::Tensor forward(const torch::Tensor& x, const Sight& sight, KeyValues& cache,
                        const std::string& name);
  const Linear& c_attn() const { return *c_attn_; }
  const Linear& c_proj() const { return *c_proj_; }

  double scale() const { return scores_.scale_of(heads_.width); }
  /// Null: none.
  const LayerNorm* q_norm() const { return q_norm_.get(); }
  const LayerNorm* k_norm() const { return k_norm_.get(); }

 private:
  /// y (B, T, n width) -> (B, n, T, width), normalised where `norm` is not null.
  torch::Tensor split(const torch::Tensor& y, const LayerNorm* norm) const;

  HeadShape heads_;
  Scores scores_;
  bool norm_of_heads_;
  double dropout_;
  std::shared_ptr<Linear> c_attn_, c_proj_;
  std::shared_ptr<LayerNorm> q_norm_, k_norm_;
};

}  // namespace nn
