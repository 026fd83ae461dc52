#pragma once
// Attention with relative positions (Dai et al. 2019, section 3.3):
//
//   score(i, j) = [(q_i + u) . k_j + (q_i + v) . W_r R(i - j)] / sqrt(width)
//
// with a content bias u and a position bias v for each head, and sinusoids R of the distance.
// Visibility of keys in layers that store past inputs.

#include "nn/layers/layers.h"

namespace nn {

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
