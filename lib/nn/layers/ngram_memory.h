#pragma once
// Large tables of what pairs and triples of tokens mean, found by hashes: the conditional memory of
// Cheng et al. 2026, "Conditional Memory via Scalable Lookup" (Engram, arXiv 2601.07372), sections
// 2.2 and 2.3, without its merging of tokens that look alike and with one residual stream.
//
// For the token x_t, n = 2 and 3, and each head h:
//
//   z_{t,n,h} = hash of (x_{t-n+1}, ..., x_t),  e_t = all rows E_{n,h}[z_{t,n,h}] side by side
//   k_t = W_k e_t,  v_t = W_v e_t,  a_t = sigmoid(RMSNorm(h_t) . RMSNorm(k_t) / sqrt(d))
//   y_t = swish(conv(RMSNorm(a v))_t) + a_t v_t
//
// h_t is the layer's input, to which y_t is added. conv is causal, each channel by itself, with 4
// taps 3 steps apart.
//
// The hash. m(c) is output c of SplitMix64 begun at 0 (Steele et al. 2014), with its lowest bit
// set; c = ((4 layer + n) 1024 + h) 4 + i with the layer from 0. All arithmetic is of 64 bits
// without sign, and a token before the row's beginning is -1:
//
//   g = XOR over i < n of (x_{t-i} + 1) m(c),   z = ((g XOR (g >> 32)) mod 2^63) mod rows
//
//   State::tensors  "ngram.tokens" (B, 2) int64: the last two tokens + 1, the newest last; 0: none
//                   NAME + ".steps" (B, kNgramPast, d): RMSNorm(a v) of the last steps

#include <cstdint>
#include <memory>
#include <string>

#include "nn/base/batch.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"
#include "nn/layers/init.h"
#include "nn/layers/layers.h"
#include "nn/layers/real_first.h"
#include "nn/layers/short_convolution.h"

namespace nn {

/// The tokens of a call and the two before each row's, for all layers of a model. It packs each
/// row's real tokens to the front (RealFirst).
class NgramCall : public RealFirst {
 public:
  /// `state` may be null: rows begin, and nothing is kept. Else its fresh rows have been reset.
  NgramCall(const Batch& batch, State* state);
  /// (B, 2 + T) int64, packed: ids + 1, 0: none.
  const torch::Tensor& tokens() const { return tokens_; }
  /// What a layer keeps of the steps before, to be replaced; undefined: none yet.
  torch::Tensor& steps(const std::string& name);

 private:
  State* state_;
  torch::Tensor tokens_, unkept_;
};

/// Of the convolution; it sees so many steps before each.
constexpr std::int64_t kNgramTaps = 4, kNgramApart = 3, kNgramPast = (kNgramTaps - 1) * kNgramApart;

struct NgramShape {
  std::int64_t d;      ///< of the vectors read and given
  std::int64_t heads;  ///< tables of each n
  std::int64_t rows;   ///< of each table
  std::int64_t width;  ///< of what is read for each n, all heads together; a multiple of heads
  std::int64_t layer;  ///< from 0: layers hash differently
};

/// `tokens` as NgramCall's -> (B, T, 2 heads) int64: z of the pairs' heads, then of the triples'.
torch::Tensor ngram_rows(const torch::Tensor& tokens, const NgramShape& shape);

class NgramMemory : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit NgramMemory(const NgramShape& shape);
  /// x (B, T, d), not packed -> y, the same shape. `name`: of what the State keeps.
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
