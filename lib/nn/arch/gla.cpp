#include "nn/arch/gla.h"

namespace nn {
namespace {

constexpr double kGateRoot = 16;  // decays start near 1
constexpr double kLeastRate = 1e-3, kMostRate = 0.1, kMostFading = 16;

/// Shifts the positions of a state's tokens from 0 .. count - 1 to the positions before 0. If count
/// is undefined, every row has `steps` tokens.
Tensor turned_back(const Tensor& state, const Tensor& count, std::int64_t steps) {
  const auto places = count.defined() ? count.unsqueeze(1) : torch::full({1, 1}, steps);
  const Rotation by(-places, state.size(-2), {}, state.options().requires_grad(false));
  const auto heads = state.reshape({state.size(0), -1, state.size(-2), state.size(-1)});
  return by.apply(heads.transpose(2, 3)).transpose(2, 3).reshape(state.sizes());
}

// Returns the shape with the heads of a delta's values.
ShapeOptions delta_shape(const ModelOptions& options) {
  auto shape = options.shape;
  if (options.gla.value_heads > 0) shape.heads = options.gla.value_heads;
  return shape;
}

void check_gla(const ShapeOptions& shape, const GlaOptions& options) {
  if (options.update == "delta" && shape.heads % std::max<std::int64_t>(1, options.key_heads) != 0)
    core::bad_config("delta-key-heads: {} does not divide the {} heads of values",
        options.key_heads, shape.heads);
  if (options.update == "delta" && options.d_key > 0 && options.d_value > 0) return;
  if (shape.heads < 1 || shape.d_model % (2 * shape.heads) != 0)
    core::bad_config("heads: twice {} does not divide d-model {}", shape.heads, shape.d_model);
  if (options.decay != "fixed") return;
  if (options.update == "delta")
    core::bad_config(
        "gla-decay: fixed (RetNet) requires gla-update sum; with delta, give gated or none");
  if (shape.d_model % (4 * shape.heads) != 0)
    core::bad_config(
        "heads: a fixed decay (RetNet) needs keys of even width, not {}: d-model / 2 / heads",
        shape.d_model / 2 / shape.heads);
}

}  // namespace

GatedLinearAttention::GatedLinearAttention(const ModelOptions& options, const std::string& decay)
    : Mixer(options.shape), decay_(decay) {
  c_in_ = add_matrix("c_in", d_, 3 * d_, false);  // q, k: d / 2 each; v, r: d each
  if (decay == "gated") {
    gate_down_ = add_matrix("gate_down", d_, kGlaGateRank, false);
    gate_up_ = add_matrix("gate_up", kGlaGateRank, d_ / 2, true);
  }
  norm_ = register_module(
      "norm", std::make_shared<LayerNorm>(d_ / heads_, options.transformer.norm_epsilon, false));
  c_proj_ = add_matrix("c_proj", d_, d_, false);
  memory_ =
      register_module("memory", std::make_shared<StateMemory>(options.state_memory, d_, heads_));
  carried_.fixed = matrices() + StateMemory::carried(options.state_memory, d_, matrices());
}

Tensor GatedLinearAttention::log_decay(const Tensor& x) const {
  if (decay_ == "gated")
    return torch::log_sigmoid(gate_up_->forward(gate_down_->forward(x))) * (1 / kGateRoot);
  const auto options = x.options().requires_grad(false);
  if (decay_ == "none")
    return torch::zeros({1, 1, 1}, options).expand({x.size(0), x.size(1), d_ / 2});
  const auto heads = torch::arange(heads_, options);
  return torch::log1p(-torch::exp2(-5 - heads))
      .repeat_interleave(d_ / 2 / heads_)
      .expand({x.size(0), x.size(1), d_ / 2});
}

Tensor GatedLinearAttention::forward(
    const Tensor& x, const MixerCall& call, const std::string& name) {
  const auto d_key = d_ / 2 / heads_;
  const auto parts = c_in_->forward(x).split_with_sizes({d_ / 2, d_ / 2, d_, d_}, 2);
  auto q = by_head(parts[0]) * (1 / std::sqrt(static_cast<double>(d_key))), k = by_head(parts[1]);
  auto fading = log_decay(x);
  if (call.real.defined()) {
    k = k * call.real.unsqueeze(3);
    fading = fading * call.real;
  }
  if (decay_ == "fixed") {
    const Rotation by(
        torch::arange(x.size(1)).unsqueeze(0), d_key, {}, q.options().requires_grad(false));
    q = by.apply(q.transpose(1, 2)).transpose(1, 2);
    k = by.apply(k.transpose(1, 2)).transpose(1, 2);
  }
  const auto out = memory_->read(x, {{q, k, by_head(fading)}, by_head(parts[2]), scan_gla},
      first_state(x, call, name), call, name);
  call.carry(name + ".state", out.state);
  for (const auto* const part : {".state", ".kept"})
    if (const auto state = call.carried(name + part); decay_ == "fixed" && state.defined())
      call.carry(name + part, turned_back(state, call.count, x.size(1)));
  return c_proj_->forward(norm_->forward(out.o).reshape(x.sizes()) * torch::silu(parts[3]));
}

GatedDelta::GatedDelta(const ModelOptions& options)
    : Mixer(delta_shape(options), options.gla.d_key,
          options.gla.d_value * delta_shape(options).heads),
      key_heads_(options.gla.key_heads > 0 ? options.gla.key_heads : heads_),
      keys_(key_heads_ * d_state_[0]), values_(heads_ * d_state_[1]),
      scale_(options.gla.d_key > 0 ? 1 / std::sqrt(static_cast<double>(d_state_[0])) : 1) {
  const bool decays = options.gla.decay == "gated";
  c_in_ = add_matrix("c_in", d_, 2 * keys_ + 2 * values_, false);  // q, k, v, r
  gates_ = add_matrix("gates", d_, decays ? 2 * heads_ : heads_, false);
  convolution_ = add_convolution("convolution", 2 * keys_ + values_, options.gla.convolution);
  if (decays) {
    a_log_ = register_parameter("a_log", blank({heads_}));
    a_bias_ = register_parameter("a_bias", blank({heads_}));
  }
  norm_ = register_module("norm", std::make_shared<LayerNorm>(d_state_[1],
                                      options.transformer.norm_epsilon, false, NormKind::rms));
  c_proj_ = add_matrix("c_proj", values_, d_, false);
  memory_ =
      register_module("memory", std::make_shared<StateMemory>(options.state_memory, d_, heads_));
  carried_.fixed += matrices() + StateMemory::carried(options.state_memory, d_, matrices());
}

Tensor of_length_one(const Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + GatedDelta::kLengthEpsilon).rsqrt();
}

void first_decays(Tensor& a_log, Tensor& a_bias) {
  a_log.uniform_(1, kMostFading).log_();
  const auto rate = a_bias.uniform_(std::log(kLeastRate), std::log(kMostRate)).exp();
  a_bias.copy_(rate.expm1().log());  // its softplus is the rate
}

void GatedDelta::first_values() {
  if (a_log_.defined()) first_decays(a_log_, a_bias_);
}

Tensor GatedDelta::forward(const Tensor& x, const MixerCall& call, const std::string& name) {
  const auto parts = c_in_->forward(x).split_with_sizes({2 * keys_ + values_, values_}, 2);
  const auto mixed = call.convolved(parts[0], *convolution_, name);
  const auto qkv = mixed.split_with_sizes({keys_, keys_, values_}, 2);
  const auto unit = [&](const Tensor& of) {
    const auto heads = of_length_one(of.unflatten(2, {key_heads_, -1}));
    return key_heads_ < heads_ ? heads.repeat_interleave(heads_ / key_heads_, 2) : heads;
  };
  const auto gates = gates_->forward(x).split(heads_, 2);
  auto beta = torch::sigmoid(gates[0]);
  auto fading = a_log_.defined() ? -a_log_.exp() * torch::softplus(gates[1] + a_bias_)
                                 : torch::zeros_like(beta);
  if (call.real.defined()) {
    beta = beta * call.real;
    fading = fading * call.real;
  }
  const auto out = memory_->read(x,
      {{scale_ == 1 ? unit(qkv[0]) : unit(qkv[0]) * scale_, unit(qkv[1]), beta, fading},
          by_head(qkv[2]),
          [](auto& s, auto& v, auto& start) {
            return delta_scan({s[0], s[1], v, s[2], s[3], start});
          }},
      first_state(x, call, name), call, name);
  call.carry(name + ".state", out.state);
  const auto o = norm_->forward(out.o.to(x.scalar_type()));
  return c_proj_->forward(o.flatten(2) * torch::silu(parts[1]));
}

namespace {

std::shared_ptr<Mixer> make(
    const ModelOptions& options, const char* update = "", const char* decay = "") {
  auto own = options;
  if (*update != 0) own.gla.update = update, own.gla.decay = decay;
  check_gla(own.gla.update == "delta" ? delta_shape(own) : own.shape, own.gla);
  if (own.gla.update == "delta") return std::make_shared<GatedDelta>(own);
  return std::make_shared<GatedLinearAttention>(own, own.gla.decay);
}

}  // namespace

const MixerFacts gla_mixer{"gla", [](const ModelOptions& o, std::int64_t) { return make(o); }};
const MixerFacts delta_mixer{
    "delta", [](const ModelOptions& o, std::int64_t) { return make(o, "delta", "gated"); }};
const MixerFacts retnet_mixer{
    "retnet", [](const ModelOptions& o, std::int64_t) { return make(o, "sum", "fixed"); }};
const MixerFacts linear_mixer{
    "linear", [](const ModelOptions& o, std::int64_t) { return make(o, "sum", "none"); }};

}  // namespace nn
