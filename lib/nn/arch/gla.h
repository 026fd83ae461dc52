#pragma once
// Gated linear attention and the gated delta rule: mixers whose state is a matrix for each head.
// Keys are half as wide as values, but for a delta's own numbers and widths of heads.

#include "nn/arch/state_memory.h"

namespace nn {

inline constexpr std::int64_t kGlaGateRank = 16;

/// Gated linear attention (Yang et al. 2023) and variants of its form:
///   q, k, v, r = c_in(x); o = gla_scan(q / sqrt(d_key), k, decay, v);
///   c_proj(swish(r) norm(o)), with a norm for each head. Has no positions.
/// decay, for each channel of the keys:
///   gated   sigmoid(gate_up(gate_down(x)))^(1/16)
///   fixed   1 - 2^(-5 - h) for head h; q and k are rotated by position as in RetNet (Sun et al.
///           2023; angles 10000^(-2i / d_key), without length factors). The state is relative to
///           position -1: after a call it is rotated back by the number of tokens, so that no
///           position is carried.
///   none    1: linear attention without normalisation
/// With --state-memory, a StateMemory ("memory") reads the states in place of q.
class GatedLinearAttention : public Mixer {
 public:
  GatedLinearAttention(const ModelOptions& options, const std::string& decay);
  torch::Tensor forward(
      const torch::Tensor& x, const MixerCall& call, const std::string& name) override;

 private:
  torch::Tensor log_decay(const torch::Tensor& x) const;  ///< (B, T, d / 2)

  std::string decay_;
  std::shared_ptr<StateMemory> memory_;
  std::shared_ptr<Linear> c_in_, gate_down_, gate_up_, c_proj_;
  std::shared_ptr<LayerNorm> norm_;
};

/// The gated delta rule (Yang et al. 2024, "Gated Delta Networks"; without decay, "Parallelizing
/// Linear Transformers with the Delta Rule"):
///   q, k, v, r = c_in(x); q, k, v = swish(convolution(q, k, v)); |q| = |k| = 1 in each head (with
///   --delta-d-key, |q| = d_key^(-1/2)); each head of keys serves delta-value-heads /
///   delta-key-heads heads of values, one after another;
///   beta, a = gates(x), for each head: beta = sigmoid(.), log decay = -exp(a_log) softplus(a +
///   a_bias); o = delta_scan(q, k, v, beta, log decay); c_proj(swish(r) norm(o)), RMS norms.
/// Initial values of the decay: first_decays(). The State also holds NAME.past, the inputs that the
/// convolution needs again.
class GatedDelta : public Mixer, public OwnFirstValues {
 public:
  static constexpr double kLengthEpsilon = 1e-6;  ///< added to |q|^2 and |k|^2

  explicit GatedDelta(const ModelOptions& options);
  torch::Tensor forward(
      const torch::Tensor& x, const MixerCall& call, const std::string& name) override;
  void first_values() override;

 private:
  std::int64_t key_heads_;
  std::int64_t keys_, values_;  // widths over all heads
  double scale_;                // of q
  std::shared_ptr<Linear> c_in_, gates_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;
  std::shared_ptr<StateMemory> memory_;
  torch::Tensor a_log_, a_bias_;  // (heads); undefined: no decay
  std::shared_ptr<LayerNorm> norm_;
};

/// Returns x with length 1 along its last dimension; kLengthEpsilon is added to |x|^2.
torch::Tensor of_length_one(const torch::Tensor& x);

}  // namespace nn
