#pragma once
// Causal multi-head self-attention: the plain reference for faster implementations.
// Sliding-window attention over long rows, without a mask quadratic in their length.
// Callback that receives attention weights during forward.
// Attention with relative positions (Dai et al. 2019, section 3.3):
//
//   score(i, j) = [(q_i + u) . k_j + (q_i + v) . W_r R(i - j)] / sqrt(width)
//
// with a content bias u and a position bias v for each head, and sinusoids R of the distance.
// Visibility of keys in layers that store past inputs.

#include "nn/layers/kv_cache.h"
#include "nn/layers/layers.h"
#include "nn/layers/positions.h"

namespace nn {

/// Called once for each layer, from first to last, with the weights (B, heads, S) that the call's
/// last query gives to the S keys visible to it. Rows sum to 1.
using AttentionCallback = std::function<void(const torch::Tensor& weights)>;

/// Additional interface of architectures that report their attention weights.
class WatchedAttention {
 public:
  virtual ~WatchedAttention() = default;
  /// Sets the callback from the next forward on. An empty function removes it.
  void watch(AttentionCallback watch) { watch_ = std::move(watch); }

 protected:
  const AttentionCallback* watcher() const { return watch_ ? &watch_ : nullptr; }

 private:
  AttentionCallback watch_;
};

/// Returns the attention weights of the last query, softmax(scores + mask): (B, heads, S). scores
/// (B, heads, 1, S) are the last query's; mask is (..., T, S) or undefined.
inline torch::Tensor last_weights(torch::Tensor scores, const torch::Tensor& mask) {
  if (mask.defined()) scores = scores + mask.narrow(-2, mask.size(-2) - 1, 1);
  return scores.softmax(-1).squeeze(2);
}

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

/// Keys visible to the queries, which are the last T of the S slots. Query i has slot S - T + i and
/// sees itself and earlier slots within both bounds. Its own slot is always visible.
struct KeyVisibility {
  torch::Tensor first;       ///< (B) int64: first visible slot of the row; undefined: 0
  std::int64_t before = -1;  ///< maximum number of slots before its own; -1: unlimited

  /// Returns whether only later slots are hidden.
  bool causal_only() const { return !first.defined() && before < 0; }
  /// Returns (B or 1, 1, T, S) bool on `device`: true if query i must not see slot j.
  torch::Tensor hidden(std::int64_t queries, std::int64_t slots, torch::Device device) const;
};

/// Parses --same-length: "on" or "off". Throws Error{bad_config}.
bool parse_same_length(const std::string& text);

/// Returns the vectors of the distances n - 1, ..., 1, 0, each at most `clamp` (0: unlimited): (n,
/// d) float64, sin(p w_i), then cos(p w_i), w_i = 10000^(-2i / d); a last odd column is 0.
torch::Tensor distance_vectors(std::int64_t n, std::int64_t clamp, std::int64_t d);

/// Returns softmax(scores) v, (B, T, heads, width). content (q + u) and position (q + v) are (B, T,
/// heads, width). kv (B, S, 2, heads, width) holds keys and values. r = W_r R (S, heads, width) is
/// for distances S - 1 to 0. Differentiable in all inputs. The CPU computes blocks of queries
/// without dropout. A device uses torch's fused attention with a bias (B, heads, T, S). All other
/// cases use operators that store such scores.
torch::Tensor relative_attend(const torch::Tensor& content, const torch::Tensor& position,
    const torch::Tensor& kv, const torch::Tensor& r, const KeyVisibility& visibility,
    double dropout);

/// Content and position bias: (heads, width) each.
class PositionBiases : public torch::nn::Module {
 public:
  PositionBiases(std::int64_t heads, std::int64_t width);
  torch::Tensor content, position;
};

/// Matrices have no biases. c_attn computes queries, keys and values, c_position is W_r, c_proj
/// combines the heads. Keys, values and positions are computed separately from attention, so that
/// callers can store them.
class RelativeAttention : public torch::nn::Module {
 public:
  RelativeAttention(std::int64_t d_model, std::int64_t heads, double dropout);
  /// Returns keys and values (B, S, 2 d) of x (B, S, d).
  torch::Tensor keys_values(const torch::Tensor& x) const;
  /// Projects vectors of distances (S, d) to (S, heads, width).
  torch::Tensor positions(const torch::Tensor& distances) const;
  /// Queries x (B, T, d), the last of the S slots; keys_values (B, S, 2 d); positions (S, heads,
  /// width) -> (B, T, d).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& keys_values,
      const torch::Tensor& positions, const PositionBiases& biases,
      const KeyVisibility& visibility);

 private:
  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> c_attn_, c_position_, c_proj_;
};

}  // namespace nn
