#pragma once
// Gated linear attention and related linear recurrences, whose state is a matrix for each head.
// Mixers of gated linear attention: recurrences whose state is a matrix for each head. Keys are
// half as wide as values. mamba2.cpp and rwkv7.cpp hold further mixers.

#include "nn/layers/block.h"
#include "nn/layers/ngram_memory.h"

namespace nn {

inline constexpr std::int64_t kGlaGateRank = 16;

/// Data of one call, common to all layers: rows of T tokens, real tokens first.
struct GlaCall {
  State* state = nullptr;  ///< null: nothing is carried
  torch::Tensor count;     ///< (B) int64: number of real tokens; undefined: T
  torch::Tensor real;      ///< (B, T, 1), derived from count: 0 at padding; undefined: no padding
  mutable torch::Tensor first_values;  ///< (B, T, d), rwkv7: layer 0's values, for later layers
  /// Returns the tensor `name` of the State, or undefined.
  torch::Tensor carried(const std::string& name) const;
  void carry(const std::string& name, const torch::Tensor& value) const;
};

class GlaMixer : public torch::nn::Module {
 public:
  /// x (B, T, d) -> (B, T, d). The State holds NAME.state (B, heads, d_key, d_value) and further
  /// tensors of the mixer. Padding does not change the state.
  virtual torch::Tensor forward(
      const torch::Tensor& x, const GlaCall& call, const std::string& name) = 0;

 protected:
  /// d_key: of one head's state; 0: half of d_value. d_value: width of the state's other side,
  /// over all heads; 0: d_model.
  GlaMixer(const ShapeOptions& shape, std::int64_t d_key = 0, std::int64_t d_value = 0)
      : heads_(shape.heads), d_(shape.d_model), d_state_{d_key > 0 ? d_key : d_ / 2 / heads_,
                                                    (d_value > 0 ? d_value : d_) / heads_} {}
  /// Reshapes (B, T, width) to (B, T, heads, width / heads).
  torch::Tensor by_head(const torch::Tensor& x) const;
  torch::Tensor first_state(
      const torch::Tensor& x, const GlaCall& call, const std::string& name) const;
  std::shared_ptr<Linear> add_matrix(
      const char* name, std::int64_t in, std::int64_t out, bool bias);

  std::int64_t heads_, d_;
  std::array<std::int64_t, 2> d_state_;  // of a head's matrix
};

/// Creates the mixer of layer `layer` (from 0) by arch and the options. Throws Error{bad_config}
/// for inconsistent options.
std::shared_ptr<GlaMixer> make_gla_mixer(const ModelOptions& options, std::int64_t layer);
std::shared_ptr<GlaMixer> make_mamba2_mixer(const ModelOptions& options);
std::shared_ptr<GlaMixer> make_rwkv7_mixer(const ModelOptions& options, std::int64_t layer);
/// The second half of an rwkv7's layer, which reads the token before.
std::shared_ptr<GlaMixer> make_rwkv7_network(const ModelOptions& options, std::int64_t layer);

/// Fills the parameters (heads) of a learned decay exp(-exp(a_log) softplus(. + a_bias)) as
/// published: exp(a_log) from 1 to 16, softplus(a_bias) from 0.001 to 0.1.
void first_decays(torch::Tensor& a_log, torch::Tensor& a_bias);

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
class GatedLinearAttention : public GlaMixer {
 public:
  GatedLinearAttention(const ShapeOptions& shape, const std::string& decay, double norm_epsilon);
  torch::Tensor forward(
      const torch::Tensor& x, const GlaCall& call, const std::string& name) override;

 private:
  torch::Tensor log_decay(const torch::Tensor& x) const;  ///< (B, T, d / 2)

  std::string decay_;
  std::shared_ptr<Linear> c_in_, gate_down_, gate_up_, c_proj_;
  std::shared_ptr<LayerNorm> norm_;
};

/// The gated delta rule (Yang et al. 2024, "Gated Delta Networks"; without decay, "Parallelizing
/// Linear Transformers with the Delta Rule"):
///   q, k, v, r = c_in(x); q, k, v = swish(convolution(q, k, v)); |q| = |k| = 1 in each head;
///   beta, a = gates(x), for each head: beta = sigmoid(.), log decay = -exp(a_log) softplus(a +
///   a_bias); o = delta_scan(q, k, v, beta, log decay); c_proj(swish(r) norm(o)), RMS norms.
/// Initial values of the decay: first_decays(). The State also holds NAME.past, the inputs that the
/// convolution needs again.
class GatedDelta : public GlaMixer, public OwnFirstValues {
 public:
  static constexpr double kLengthEpsilon = 1e-6;  ///< added to |q|^2 and |k|^2

  GatedDelta(const ShapeOptions& shape, const GlaOptions& options, double norm_epsilon);
  torch::Tensor forward(
      const torch::Tensor& x, const GlaCall& call, const std::string& name) override;
  void first_values() override;

 private:
  std::shared_ptr<Linear> c_in_, gates_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;  // null: none
  torch::Tensor a_log_, a_bias_;                   // (heads); undefined: no decay
  std::shared_ptr<LayerNorm> norm_;
};

/// Layers compute x += mixer(ln_1(x)); x += mlp(ln_2(x)), followed by a final norm; --arch,
/// --gla-update and --gla-decay select the mixer. Feed-forward networks, memories in their place
/// and norms are the transformer's. A mamba2 has RMS norms and no second half, an rwkv7 a norm
/// after the embedding (ln_0) and its own second half. The memory key is the input of the last mlp
/// (mamba2: of the last mixer), or the output. State: "h.0.state", ...; see gla.h.
class Gla : public Architecture, public RingDecoder {
 public:
  Gla(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  bool carries() const override { return true; }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 private:
  Hidden run(const torch::Tensor& ids, const GlaCall& call);

  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GlaMixer> mixer;
    std::shared_ptr<TokenNetwork> mlp;  // null: `shifted`, or with neither no second half
    std::shared_ptr<GlaMixer> shifted = {};
  };
  ShapeOptions shape_;
  std::shared_ptr<Embedding> wte_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_0_, ln_f_;  // ln_0_ null: none
};

}  // namespace nn
