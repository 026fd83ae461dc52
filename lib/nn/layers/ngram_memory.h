#pragma once
// Hashed embedding tables for pairs and triples of tokens: the conditional memory of Cheng et al.
// 2026, "Conditional Memory via Scalable Lookup" (Engram, arXiv 2601.07372), sections 2.2 and 2.3.
// This version does not merge similar tokens and has one residual stream.
//
// For the token x_t, n = 2 and 3, and each head h:
//
//  z_{t,n,h} = hash of (x_{t-n+1}, ..., x_t),  e_t = concatenation of all rows E_{n,h}[z_{t,n,h}]
//  k_t = W_k e_t,  v_t = W_v e_t,  a_t = sigmoid(RMSNorm(h_t) . RMSNorm(k_t) / sqrt(d))
//  y_t = swish(conv(RMSNorm(a v))_t) + a_t v_t
//
// h_t is the layer's input; the layer adds y_t to it. conv is a causal depthwise convolution with
// kernel size 4 and dilation 3.
//
// The hash uses multipliers m(c): output c of SplitMix64 seeded with 0 (Steele et al. 2014), with
// its lowest bit set. c = ((4 layer + n) 1024 + h) 4 + i, where layers count from 0. Arithmetic is
// unsigned 64-bit. A token before the beginning of the row is -1:
//
//  g = XOR over i < n of (x_{t-i} + 1) m(c),   z = ((g XOR (g >> 32)) mod 2^63) mod rows
//
// State tensors:
//
//  "ngram.tokens"   (B, 2) int64: the last two tokens + 1, the newest last; 0: none
//  NAME + ".steps"  (B, kNgramPast, d): RMSNorm(a v) of the last steps
// Short convolution before the queries, keys and values of recurrences.

#include "nn/layers/layer_memory.h"
#include "nn/layers/layers.h"

namespace nn {

/// A causal depthwise convolution with swish (swish_convolution.h). Initial values are uniform in
/// +-1 / sqrt(taps), or 0.
class ShortConvolution : public torch::nn::Module, public OwnFirstValues {
 public:
  /// The taps are `apart` steps apart. The last tap is the current step. Swish follows, if `swish`.
  /// One tap: swish alone, without weights.
  ShortConvolution(std::int64_t width, std::int64_t taps, std::int64_t apart = 1,
      bool first_zero = false, bool bias = false, bool swish = true);
  /// Maps x (B, T, width) to the same shape. `past` (B, (taps - 1) apart, width) holds the previous
  /// steps and is replaced for the next call; undefined: 0. `count` (B) int64 is the number of real
  /// steps of each row, which come first; undefined: T.
  torch::Tensor forward(
      const torch::Tensor& x, torch::Tensor& past, const torch::Tensor& count) const;
  void first_values() override;

 private:
  torch::Tensor weight_, bias_;  // (width, taps); (width); undefined without one
  std::int64_t apart_;
  bool first_zero_, swish_;
};

/// The tokens of a call and the two tokens before each row, shared by all layers of a model. It
/// packs each row's real tokens to the front (RealFirst).
class NgramCall : public RealFirst {
 public:
  /// If `state` is null, rows begin with this call and nothing is saved. Otherwise the caller has
  /// reset the fresh rows of the state.
  NgramCall(const Batch& batch, State* state);
  /// Returns (B, 2 + T) int64, packed: token id + 1, or 0 for no token.
  const torch::Tensor& tokens() const { return tokens_; }
  /// Returns a layer's saved steps, for the layer to replace. Undefined if there are none yet.
  torch::Tensor& steps(const std::string& name);

 private:
  State* state_;
  torch::Tensor tokens_, unkept_;
};

/// Kernel size and dilation of the convolution, and the number of earlier steps that it reads.
constexpr std::int64_t kNgramTaps = 4, kNgramApart = 3, kNgramPast = (kNgramTaps - 1) * kNgramApart;

struct NgramShape {
  std::int64_t d;      ///< width of inputs and outputs
  std::int64_t heads;  ///< tables for each n
  std::int64_t rows;   ///< rows of each table
  std::int64_t width;  ///< width read for each n over all heads; a multiple of heads
  std::int64_t layer;  ///< index from 0, which makes the hashes of layers differ
};

/// Returns (B, T, 2 heads) int64: z of the pairs' heads, then of the triples' heads. `tokens` must
/// be packed as in NgramCall.
torch::Tensor ngram_rows(const torch::Tensor& tokens, const NgramShape& shape);

class NgramMemory : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit NgramMemory(const NgramShape& shape);
  /// Maps x (B, T, d), not packed, to y of the same shape. `name` prefixes the State tensor.
  torch::Tensor forward(const torch::Tensor& x, NgramCall& call, const std::string& name) const;
  /// Takes `tables` of the same shape, which lie in a mapped file, in the place of its own. From
  /// then on ask_for_rows() has work to do.
  void stay_on_disk(const torch::Tensor& tables);
  /// Begins to read from disk what forward() of this call will look up; returns at once.
  void ask_for_rows(const NgramCall& call) const;
  /// Tables normal(0, width^-0.5). The convolution begins at 0, as in the paper.
  void first_values() override;

 private:
  /// The rows of tables_ (B, T, 2 heads) that a call looks up.
  torch::Tensor rows_of(const NgramCall& call) const;

  NgramShape shape_;
  bool on_disk_ = false;
  torch::Tensor tables_;  // (2 heads rows, width / heads): those of the pairs first
  std::shared_ptr<Linear> c_key_, c_value_;
  std::shared_ptr<LayerNorm> norm_q_, norm_k_, norm_v_;
  std::shared_ptr<ShortConvolution> convolution_;
};

}  // namespace nn
