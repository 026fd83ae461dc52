#include "nn/arch/gla.h"

#include "nn/base/upload.h"
#include "nn/layers/block_stack.h"
#include "nn/ops/gla_scan.h"

namespace nn {
namespace {

using torch::Tensor;

constexpr double kGateRoot = 16;  // decays start near 1
constexpr double kLeastRate = 1e-3, kMostRate = 0.1, kMostFading = 16;

Tensor of_length_one(const Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + GatedDelta::kLengthEpsilon).rsqrt();
}

/// Shifts the positions of a state's tokens from 0 .. count - 1 to the positions before 0. If count
/// is undefined, every row has `steps` tokens.
Tensor turned_back(const Tensor& state, const Tensor& count, std::int64_t steps) {
  const auto places = count.defined() ? count.unsqueeze(1) : torch::full({1, 1}, steps);
  const Rotation by(-places, state.size(2), {}, state.options().requires_grad(false));
  return by.apply(state.transpose(2, 3)).transpose(2, 3);
}

void check_gla(const ShapeOptions& shape, const GlaOptions& options) {
  if (shape.heads < 1 || shape.d_model % (2 * shape.heads) != 0)
    core::bad_config("heads: twice {} does not divide d-model {}", shape.heads, shape.d_model);
  if (options.decay != "fixed") return;
  if (options.update == "delta")
    core::bad_config(
        "gla-decay: fixed (RetNet) requires gla-update sum; with delta, give gated or none");
  if (shape.d_model % (4 * shape.heads) != 0)
    core::bad_config(
        "gla-decay: fixed needs keys of even width, not {}", shape.d_model / 2 / shape.heads);
}

}  // namespace

Tensor GlaCall::carried(const std::string& name) const {
  return state != nullptr && state->has(name) ? state->tensors[name] : Tensor();
}

void GlaCall::carry(const std::string& name, const Tensor& value) const {
  if (state != nullptr) state->tensors[name] = value;
}

Tensor GlaMixer::by_head(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), heads_, x.size(2) / heads_});
}

Tensor GlaMixer::first_state(const Tensor& x, const GlaCall& call, const std::string& name) const {
  const auto carried = call.carried(name + ".state");
  return carried.defined() ? carried
                           : torch::zeros({x.size(0), heads_, d_state_[0], d_state_[1]},
                                 x.options().requires_grad(false));
}

std::shared_ptr<Linear> GlaMixer::add_matrix(
    const char* name, std::int64_t in, std::int64_t out, bool bias) {
  return register_module(name, std::make_shared<Linear>(in, out, bias));
}

std::shared_ptr<GlaMixer> make_gla_mixer(const ModelOptions& options, std::int64_t layer) {
  if (options.arch == "mamba2") return make_mamba2_mixer(options);
  if (options.arch == "rwkv7") return make_rwkv7_mixer(options, layer);
  const auto epsilon = options.transformer.norm_epsilon;
  if (options.gla.update == "delta")
    return std::make_shared<GatedDelta>(options.shape, options.gla, epsilon);
  return std::make_shared<GatedLinearAttention>(options.shape, options.gla.decay, epsilon);
}

GatedLinearAttention::GatedLinearAttention(
    const ShapeOptions& shape, const std::string& decay, double norm_epsilon)
    : GlaMixer(shape), decay_(decay) {
  c_in_ = add_matrix("c_in", d_, 3 * d_, false);  // q, k: d / 2 each; v, r: d each
  if (decay == "gated") {
    gate_down_ = add_matrix("gate_down", d_, kGlaGateRank, false);
    gate_up_ = add_matrix("gate_up", kGlaGateRank, d_ / 2, true);
  }
  norm_ = register_module("norm", std::make_shared<LayerNorm>(d_ / heads_, norm_epsilon, false));
  c_proj_ = add_matrix("c_proj", d_, d_, false);
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
    const Tensor& x, const GlaCall& call, const std::string& name) {
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
  auto out = gla_scan({q, k, by_head(fading), by_head(parts[2]), first_state(x, call, name)});
  if (decay_ == "fixed" && call.state != nullptr)
    out.state = turned_back(out.state, call.count, x.size(1));
  call.carry(name + ".state", out.state);
  return c_proj_->forward(norm_->forward(out.o).reshape(x.sizes()) * torch::silu(parts[3]));
}

GatedDelta::GatedDelta(const ShapeOptions& shape, const GlaOptions& options, double norm_epsilon)
    : GlaMixer(shape) {
  const bool decays = options.decay == "gated";
  c_in_ = add_matrix("c_in", d_, 3 * d_, false);  // q, k: d / 2 each; v, r: d each
  gates_ = add_matrix("gates", d_, decays ? 2 * heads_ : heads_, false);
  if (options.convolution > 1)
    convolution_ = register_module(
        "convolution", std::make_shared<ShortConvolution>(2 * d_, options.convolution));
  if (decays) {
    a_log_ = register_parameter("a_log", blank({heads_}));
    a_bias_ = register_parameter("a_bias", blank({heads_}));
  }
  norm_ = register_module(
      "norm", std::make_shared<LayerNorm>(d_ / heads_, norm_epsilon, false, NormKind::rms));
  c_proj_ = add_matrix("c_proj", d_, d_, false);
}

void first_decays(Tensor& a_log, Tensor& a_bias) {
  a_log.uniform_(1, kMostFading).log_();
  const auto rate = a_bias.uniform_(std::log(kLeastRate), std::log(kMostRate)).exp();
  a_bias.copy_(rate.expm1().log());  // its softplus is the rate
}

void GatedDelta::first_values() {
  if (a_log_.defined()) first_decays(a_log_, a_bias_);
}

Tensor GatedDelta::forward(const Tensor& x, const GlaCall& call, const std::string& name) {
  const auto parts = c_in_->forward(x).split_with_sizes({2 * d_, d_}, 2);
  Tensor mixed;
  if (convolution_ != nullptr) {
    auto past = call.carried(name + ".past");
    mixed = convolution_->forward(parts[0], past, call.count);
    call.carry(name + ".past", past);
  } else {
    mixed = torch::silu(parts[0]);
  }
  const auto qkv = mixed.split_with_sizes({d_ / 2, d_ / 2, d_}, 2);
  const auto gates = gates_->forward(x).split(heads_, 2);
  auto beta = torch::sigmoid(gates[0]);
  auto fading = a_log_.defined() ? -a_log_.exp() * torch::softplus(gates[1] + a_bias_)
                                 : torch::zeros_like(beta);
  if (call.real.defined()) {
    beta = beta * call.real;
    fading = fading * call.real;
  }
  const auto out = delta_scan({of_length_one(by_head(qkv[0])), of_length_one(by_head(qkv[1])),
      by_head(qkv[2]), beta, fading, first_state(x, call, name)});
  call.carry(name + ".state", out.state);
  return c_proj_->forward(norm_->forward(out.o).reshape(x.sizes()) * torch::silu(parts[1]));
}

Gla::Gla(const ModelOptions& options, std::int64_t vocabulary) : shape_(options.shape) {
  const bool mamba = options.arch == "mamba2", rwkv = options.arch == "rwkv7";
  if (!mamba && !rwkv) check_gla(shape_, options.gla);
  const auto& block = options.transformer;
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape_.d_model, block.norm_epsilon, !mamba && block.bias,
        mamba ? NormKind::rms : NormKind::layer);
  };
  if (rwkv) ln_0_ = register_module("ln_0", norm());
  const MemoryNetworks memories(options.memory_layer, shape_, *this);
  const auto layers = add_layers(*this, "h", shape_.layers);
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const auto& layer = layers[static_cast<std::size_t>(i)];
    auto& made = layers_.emplace_back();
    made.ln_1 = layer->register_module("ln_1", norm());
    if (!mamba) made.ln_2 = layer->register_module("ln_2", norm());
    made.mixer = layer->register_module("mixer", make_gla_mixer(options, i));
    if (rwkv) made.shifted = layer->register_module("mlp", make_rwkv7_network(options, i));
    if (!mamba && !rwkv)
      made.mlp = memories.add(i, *layer,
          std::make_shared<FeedForward>(shape_, parse_activation(block.activation), block.bias));
  }
  ln_f_ = register_module("ln_f", norm());
}

Hidden Gla::forward(const Batch& batch, State* state) {
  const RealFirst rows(batch);
  GlaCall call;
  call.state = state;
  if (!rows.dense()) call.count = rows.count();
  if (state != nullptr && state->has("h.0.state")) {
    if (state->tensors["h.0.state"].size(0) != batch.rows())
      core::bug("a state of {} rows cannot continue with a batch of {} rows",
          state->tensors["h.0.state"].size(0), batch.rows());
    state->reset(batch.fresh);
  }
  const auto made = run(rows.packed_ids(batch), call);
  return {rows.unpack(made.output), rows.unpack(made.key)};
}

Hidden Gla::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  GlaCall call;
  call.state = &kept;
  if (!ring.place().full) call.count = ring.place().count.squeeze(1);
  return run(ids, call);
}

Hidden Gla::run(const torch::Tensor& ids, const GlaCall& rows) {
  const auto drop = [&](const torch::Tensor& y) {
    return dropped(y, shape_.dropout, is_training());
  };
  auto call = rows;
  auto x = drop(wte_->forward(ids));
  if (ln_0_ != nullptr) x = ln_0_->forward(x);
  if (call.count.defined()) {
    const auto real = torch::arange(ids.size(1), call.count.options()) < call.count.unsqueeze(1);
    call.real = upload(real.unsqueeze(2), x.device()).to(x.scalar_type());
  }
  torch::Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto name = "h." + std::to_string(i);
    g = layer.ln_1->forward(x);
    x = x + drop(layer.mixer->forward(g, call, name));
    if (layer.ln_2 == nullptr) continue;
    g = layer.ln_2->forward(x);
    x = x + drop(layer.mlp ? layer.mlp->forward(g) : layer.shifted->forward(g, call, name));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

// Each head has a matrix of half its width by its full width (rwkv7: its width twice).
CarriedState Gla::carried_state(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model;
  if (options.arch == "mamba2")
    return {options.shape.layers * (options.mamba2.state * options.mamba2.width(d) +
                                       (options.gla.convolution - 1) *
                                           (options.mamba2.width(d) + 2 * options.mamba2.state))};
  if (options.arch == "rwkv7") return {options.shape.layers * d * (d / options.shape.heads + 2)};
  std::int64_t a_layer = d / 2 * (d / options.shape.heads);
  if (options.gla.update == "delta") a_layer += (options.gla.convolution - 1) * 2 * d;
  return {options.shape.layers * a_layer};
}

}  // namespace nn
