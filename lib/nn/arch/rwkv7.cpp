// RWKV-7 (Peng et al. 2025, "RWKV-7 Goose", arXiv 2503.14456): the time mixing and the channel
// mixing of a layer. x_m = x + mix_m (x before - x) for each use m, and lora_m(x) = f(x down) up:
//
//   r, k, v = r(x_r), k(x_k), v(x_v);  v += (layer 0's v - v) sigmoid(lora_v(x_v)), above layer 0
//   log decay = -e^{-1/2} sigmoid(lora_w(x_w)), with tanh;  a = sigmoid(lora_a(x_a))
//   g = lora_g(x_g), with sigmoid
//   d = k key_removed, of length one in each head;  k = k (1 + (a - 1) key_added)
//   S_t = diag(decay_t) S_{t-1} - (a d)_t (d_t^T S_{t-1}) + k_t v_t^T,  o_t = S_t^T r_t
//   output = c_proj(g (norm(o) + (r . bonus k) v)), norm and product for each head
//
//   channel mixing: c_proj(relu(c_fc(x_k))^2)
//
// State: NAME.state, NAME.last and NAME.channel, the last inputs of both.

#include "nn/arch/mixer.h"
#include "nn/ops/rank_one_scan.h"

namespace nn {
namespace {

constexpr double kGroupEpsilon = 64e-5;  // of the norms of heads

/// x (B, T, d) of the tokens before. The State keeps the last token's x as NAME (B, 1, d).
Tensor before(const Tensor& x, const MixerCall& call, const std::string& name) {
  return call.after_past(x, 1, name).narrow(1, 0, x.size(1));
}

/// A position of the channels from 0 to 1, (d).
Tensor along(const Tensor& like, std::int64_t d) {
  return torch::arange(d, like.options().requires_grad(false)) / static_cast<double>(d);
}

class Rwkv7Mixer : public Mixer, public OwnFirstValues {
 public:
  Rwkv7Mixer(const ModelOptions& options, std::int64_t layer)
      : Mixer(
            options.shape, options.shape.d_model / std::max<std::int64_t>(1, options.shape.heads)),
        layer_(layer), layers_(options.shape.layers) {
    if (d_ % heads_ != 0) core::bad_config("heads: {} does not divide d-model {}", heads_, d_);
    carried_.fixed = matrices() + 2 * d_;  // with the network's
    mix_ = register_parameter("mix", blank({kMixes * d_}));
    for (const char* const name : {"r", "k", "v"}) maps_.push_back(add_matrix(name, d_, d_, false));
    const auto ranks = rwkv7_ranks(d_);
    lora_w_ = add_lora("w", ranks[0], true);
    lora_a_ = add_lora("a", ranks[1], true);
    if (layer > 0) lora_v_ = add_lora("v", ranks[2], true);
    lora_g_ = add_lora("g", ranks[3], false);
    removed_ = register_parameter("key_removed", blank({d_}));
    added_ = register_parameter("key_added", blank({d_}));
    bonus_ = register_parameter("bonus", blank({d_}));
    norm_ = register_module("norm", std::make_shared<LayerNorm>(d_, kGroupEpsilon, true));
    c_proj_ = add_matrix("c_proj", d_, d_, false);
  }

  // As published, but the matrices are those of --init.
  void first_values() override {
    const auto place = along(mix_, d_);
    const double depth = layers_ > 1
                             ? static_cast<double>(layer_) / static_cast<double>(layers_ - 1)
                             : 0,
                 above = 1 - static_cast<double>(layer_) / static_cast<double>(layers_);
    const double powers[] = {.2, .9, .7, .7, .9, .2};  // r, w, k, v, a, g
    for (std::int64_t m = 0; m < kMixes; ++m)
      mix_.narrow(0, m * d_, d_).copy_(1 - place.pow(powers[m] * above));
    lora_w_.up->bias.copy_(-6.5 + 5 * place.pow(0.85 + std::sqrt(depth)));
    lora_a_.up->bias.zero_();
    if (layer_ > 0) lora_v_.up->bias.fill_(1);
    removed_.fill_(0.85), added_.fill_(1), bonus_.zero_();
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto change = before(x, call, name + ".last") - x;
    const auto mixed = [&](std::int64_t m) { return x + change * mix_.narrow(0, m * d_, d_); };
    const auto r = by_head(maps_[0]->forward(mixed(0)));
    const auto all_k = maps_[1]->forward(mixed(2)), x_v = mixed(3);
    auto all_v = maps_[2]->forward(x_v);
    if (layer_ == 0) call.first_values = all_v;
    else all_v = all_v + (call.first_values - all_v) * torch::sigmoid(lora_v_(x_v));
    auto fading = -std::exp(-0.5) * torch::sigmoid(lora_w_(mixed(1), torch::tanh));
    const auto rate = torch::sigmoid(lora_a_(mixed(4)));
    const auto removed = by_head(all_k * removed_);
    const auto one = removed / removed.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
    auto k = by_head(all_k * (1 + (rate - 1) * added_)), written = one * by_head(rate);
    const auto v = by_head(all_v);
    const auto bonus = (r * k * bonus_.view({heads_, -1})).sum(-1, /*keepdim=*/true) * v;
    if (call.real.defined()) {
      fading = fading * call.real;
      k = k * call.real.unsqueeze(3);
      written = written * call.real.unsqueeze(3);
    }
    const auto out =
        rank_one_scan({r, k, -one, written, by_head(fading), v, first_state(x, call, name)});
    call.carry(name + ".state", out.state);
    const auto normed = torch::group_norm(out.o.reshape({-1, d_}).to(x.scalar_type()), heads_,
        norm_->weight, norm_->bias, kGroupEpsilon);
    const auto g = lora_g_(mixed(5), torch::sigmoid);
    return c_proj_->forward(g * (normed.view(x.sizes()) + bonus.reshape(x.sizes())));
  }

 private:
  static constexpr std::int64_t kMixes = 6;
  struct Lora {
    std::shared_ptr<Linear> down, up;
    Tensor operator()(const Tensor& x, Tensor (*f)(const Tensor&) = nullptr) const {
      const auto low = down->forward(x);
      return up->forward(f == nullptr ? low : f(low));
    }
  };
  Lora add_lora(const std::string& name, std::int64_t rank, bool bias) {
    return {add_matrix((name + "_down").c_str(), d_, rank, false),
        add_matrix((name + "_up").c_str(), rank, d_, bias)};
  }

  std::int64_t layer_, layers_;
  Tensor mix_;                                 // (6 d): of r, w, k, v, a, g
  std::vector<std::shared_ptr<Linear>> maps_;  // of r, k, v
  Lora lora_w_, lora_a_, lora_v_, lora_g_;
  Tensor removed_, added_, bonus_;  // (d)
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> c_proj_;
};

class Rwkv7Network : public Mixer, public OwnFirstValues {
 public:
  Rwkv7Network(const ModelOptions& options, std::int64_t layer)
      : Mixer(options.shape), layer_(layer), layers_(options.shape.layers) {
    mix_ = register_parameter("mix", blank({d_}));
    c_fc_ = add_matrix("c_fc", d_, options.shape.ffn_width(), false);
    c_proj_ = add_matrix("c_proj", options.shape.ffn_width(), d_, false);
  }
  void first_values() override {
    const double above = 1 - static_cast<double>(layer_) / static_cast<double>(layers_);
    mix_.copy_(1 - along(mix_, d_).pow(std::pow(above, 4)));
  }
  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto mixed = x + (before(x, call, name + ".channel") - x) * mix_;
    return c_proj_->forward(torch::relu(c_fc_->forward(mixed)).square());
  }

 private:
  std::int64_t layer_, layers_;
  Tensor mix_;  // (d)
  std::shared_ptr<Linear> c_fc_, c_proj_;
};

}  // namespace

std::vector<std::int64_t> rwkv7_ranks(std::int64_t d_model) {
  const auto rank = [d = static_cast<double>(d_model)](double factor, double power) {
    return std::max<std::int64_t>(32, 32 * std::llround(factor * std::pow(d, power) / 32));
  };
  return {rank(1.8, 0.5), rank(1.8, 0.5), rank(1.3, 0.5), rank(0.6, 0.8)};
}

const MixerFacts rwkv7_mixer{.name = "rwkv7",
    .make = make_mixer<Rwkv7Mixer>,
    .second = MixerFacts::Second::own,
    .make_network = make_mixer<Rwkv7Network>,
    .first_norm = true};

}  // namespace nn
