#pragma once
// Mixers: what a layer does to a sequence, with a state of constant size or, with attention, all
// earlier tokens. A stack of layers has one mixer a layer. To add a mixer, write one file with its
// maker, and add its line in mixer_stack.cpp and its name in architecture.cpp.

#include "nn/layers/block.h"
#include "nn/layers/ngram_memory.h"

namespace nn {

/// Data of one call, common to all layers: rows of T tokens, real tokens first.
struct MixerCall {
  State* state = nullptr;  ///< null: nothing is carried
  torch::Tensor count;     ///< (B) int64: number of real tokens; undefined: T
  torch::Tensor real;      ///< (B, T, 1), derived from count: 0 at padding; undefined: no padding
  mutable torch::Tensor first_values;  ///< (B, T, d), rwkv7: the first layer's values
  /// Returns the tensor `name` of the State, or undefined.
  torch::Tensor carried(const std::string& name) const;
  void carry(const std::string& name, const torch::Tensor& value) const;
  /// Returns the last `steps` real tokens of x (B, T, width), after those that the State holds as
  /// `name`, and all of them: (B, steps + T, width). The State keeps the last ones; before the
  /// first token they are 0.
  torch::Tensor after_past(
      const torch::Tensor& x, std::int64_t steps, const std::string& name) const;
  /// Returns all real tokens that the State holds as `name`, then x: (B, S, width). The State keeps
  /// them with the newest last; slots before a row's first token are 0.
  torch::Tensor after_all(const torch::Tensor& x, const std::string& name) const;
  /// Returns the convolution of x (B, T, width). The State keeps the last inputs as NAME.past.
  torch::Tensor convolved(
      const torch::Tensor& x, const ShortConvolution& by, const std::string& name) const;
};

/// What ends the names of the State's tensors that grow by a slot a token: (B, S, width), of which
/// the last number is 1 for a token and 0 for an empty slot.
inline constexpr const char* kReadByAttention = ".read";

class Mixer : public torch::nn::Module {
 public:
  /// x (B, T, d) -> (B, T, d). The State holds tensors that begin with `name`. Padding does not
  /// change the state.
  virtual torch::Tensor forward(
      const torch::Tensor& x, const MixerCall& call, const std::string& name) = 0;
  /// Returns the numbers that the layer's State has for a row.
  const CarriedState& carried() const { return carried_; }

 protected:
  /// d_key: of one head's state; 0: half of d_value. d_value: width of the state's other side,
  /// over all heads; 0: d_model.
  Mixer(const ShapeOptions& shape, std::int64_t d_key = 0, std::int64_t d_value = 0)
      : heads_(shape.heads), d_(shape.d_model), d_state_{d_key > 0 ? d_key : d_ / 2 / heads_,
                                                    (d_value > 0 ? d_value : d_) / heads_} {}
  /// Reshapes (B, T, width) to (B, T, heads, width / heads).
  torch::Tensor by_head(const torch::Tensor& x) const;
  /// Returns NAME.state (B, heads, d_key, d_value) of the State, or 0.
  torch::Tensor first_state(
      const torch::Tensor& x, const MixerCall& call, const std::string& name) const;
  std::shared_ptr<Linear> add_matrix(
      const char* name, std::int64_t in, std::int64_t out, bool bias);
  /// Also counts the inputs that MixerCall::convolved() carries.
  std::shared_ptr<ShortConvolution> add_convolution(const char* name, std::int64_t width,
      std::int64_t taps, bool bias = false, bool swish = true);
  /// Returns the numbers of all heads' matrices.
  std::int64_t matrices() const { return heads_ * d_state_[0] * d_state_[1]; }

  std::int64_t heads_, d_;
  std::array<std::int64_t, 2> d_state_;  // of a head's matrix
  CarriedState carried_;                 // set by the constructor
};

/// Makes the mixer of layer `layer`, counted from 0 among the stack's layers with this mixer.
/// Throws Error{bad_config} for inconsistent options.
using MakeMixer = std::shared_ptr<Mixer>(const ModelOptions& options, std::int64_t layer);

/// Makes a Made from the options, and from the layer if its constructor takes one.
template <class Made>
std::shared_ptr<Mixer> make_mixer(const ModelOptions& options, std::int64_t layer) {
  if constexpr (std::is_constructible_v<Made, const ModelOptions&, std::int64_t>)
    return std::make_shared<Made>(options, layer);
  else return std::make_shared<Made>(options);
}

/// A mixer, and what its layer has around it.
struct MixerFacts {
  const char* name;  ///< in --mixer, and of the architecture all of whose layers have it
  MakeMixer* make;
  enum class Second { network, own, none } second = Second::network;  ///< the layer's second half
  MakeMixer* make_network = nullptr;                                  ///< of Second::own
  NormKind norm = NormKind::layer;
  bool first_norm = false;  ///< as the first layer: a norm after the embedding
};

/// Fills the parameters (heads) of a learned decay exp(-exp(a_log) softplus(. + a_bias)) as
/// published: exp(a_log) from 1 to 16, softplus(a_bias) from 0.001 to 0.1.
void first_decays(torch::Tensor& a_log, torch::Tensor& a_bias);

/// Returns the ranks of an rwkv7's low-rank maps of decays, rates, values and gates, as published.
std::vector<std::int64_t> rwkv7_ranks(std::int64_t d_model);

/// The mixers, each in the file of its name; gla, delta, retnet and linear in gla.cpp.
extern const MixerFacts delta_mixer, gated_attention_mixer, gla_mixer, h3_mixer, hyena_mixer,
    kda_mixer, linear_mixer, mamba_mixer, mamba2_mixer, retnet_mixer, rwkv4_mixer, rwkv7_mixer,
    s4d_mixer, window_mixer;

/// Layers compute x += mixer(ln_1(x)); x += mlp(ln_2(x)), followed by a final norm. Feed-forward
/// networks, memories in their place and norms are the transformer's, or as the mixer's facts say;
/// in a hybrid, --norm-kind goes before the facts.
/// arch hybrid repeats the list --mixer over the layers. The memory key is the input of the last
/// layer's last half, or the output. State: "h.0.state", ...
class MixerStack : public CarryingArchitecture {
 public:
  MixerStack(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  Carry carry() const override { return grows_ ? Carry::forget : Carry::constant; }
  void forget(State& state, std::int64_t keep) override;
  bool in_rings() const override { return one_state_ && !grows_; }
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);

 private:
  Hidden run(const torch::Tensor& ids, const MixerCall& call);

  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<Mixer> mixer;
    std::shared_ptr<TokenNetwork> mlp;  // null: `own`, or with neither no second half
    std::shared_ptr<Mixer> own = {};
  };
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_0_, ln_f_;  // ln_0_ null: none
  bool grows_ = false;                      // the State, with the text
};

}  // namespace nn
