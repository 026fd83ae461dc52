// RWKV-4 (Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era", arXiv 2305.13048):
// the time mixing and the channel mixing of a layer. x_m = x before + mix_m (x - x before) for each
// use m, and for each channel:
//
//   k, v, r = k(x_k), v(x_v), sigmoid(r(x_r))
//   wkv_t = (sum over s < t of e^{(t-1-s) w + k_s} v_s + e^{bonus + k_t} v_t) / the same without v
//   output = c_proj(r wkv), w = -exp(decay)
//
//   channel mixing: sigmoid(r(x_r)) c_proj(relu(c_fc(x_k))^2)
//
// State: NAME.state, NAME.last and NAME.channel, the last inputs of both.

#include "nn/arch/mixer.h"
#include "nn/base/upload.h"
#include "nn/ops/gla_scan.h"

namespace nn {
namespace {

/// What both parts of a layer have: mixtures with the token before, and matrices.
class Rwkv4Part : public Mixer, public OwnFirstValues {
 protected:
  Rwkv4Part(const ModelOptions& options, std::int64_t layer, std::int64_t mixes)
      : Mixer(options.shape), layer_(static_cast<double>(layer)),
        layers_(static_cast<double>(options.shape.layers)) {
    mix_ = register_parameter("mix", blank({mixes * d_}));
  }
  /// Returns a function of m: x_m. The State keeps the last token's x as `name` (B, 1, d).
  auto mixed(const Tensor& x, const MixerCall& call, const std::string& name) const {
    const auto before = call.after_past(x, 1, name).narrow(1, 0, x.size(1));
    return [this, before, change = x - before](
               std::int64_t m) { return before + change * mix_.narrow(0, m * d_, d_); };
  }
  /// The first values of a mixture: the channels' places from 0 to 1, to a power that falls from
  /// `power` as layers rise.
  Tensor places(double power) const {
    const auto place = torch::arange(d_, mix_.options().requires_grad(false));
    return (place / static_cast<double>(d_)).pow(power * (1 - layer_ / layers_));
  }

  double layer_, layers_;
  Tensor mix_;  // (mixes d)
};

class Rwkv4Mixer : public Rwkv4Part {
 public:
  Rwkv4Mixer(const ModelOptions& options, std::int64_t layer) : Rwkv4Part(options, layer, 3) {
    carried_.fixed = 5 * d_;  // with the network's
    decay_ = register_parameter("decay", blank({d_}));
    bonus_ = register_parameter("bonus", blank({d_}));
    for (const char* const name : {"k", "v", "r"}) maps_.push_back(add_matrix(name, d_, d_, false));
    c_proj_ = add_matrix("c_proj", d_, d_, false);
  }

  // As published, but the matrices are those of --init.
  void first_values() override {
    const auto depth = layers_ > 1 ? layer_ / (layers_ - 1) : 0;
    const auto channel = torch::arange(d_, decay_.options().requires_grad(false));
    decay_.copy_(-5 + 8 * (channel / static_cast<double>(std::max<std::int64_t>(1, d_ - 1)))
                              .pow(0.7 + 1.3 * depth));
    bonus_.copy_(std::log(0.3) + 0.5 * ((channel + 1).remainder(3) - 1));
    mix_.copy_(torch::cat({places(1), places(1) + 0.3 * depth, places(0.5)}));
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto of = mixed(x, call, name + ".last");
    const auto wkv = average(maps_[0]->forward(of(0)), maps_[1]->forward(of(1)), call, name);
    return c_proj_->forward(torch::sigmoid(maps_[2]->forward(of(2))) * wkv.to(x.scalar_type()));
  }

 private:
  /// Returns wkv. Sums are divided by e^level, the largest term so far, and are then a recurrence
  /// whose exponents are at most 0; no gradient flows through the levels, which cancel. State:
  /// NAME.state (B, d, 3), the two sums and their level.
  Tensor average(const Tensor& keys, const Tensor& values, const MixerCall& call,
      const std::string& name) const {
    const auto type = accumulation_type(keys);
    const auto T = keys.size(1);
    const auto k = keys.to(type), v = values.to(type), w = -decay_.to(type).exp(), now = k + bonus_;
    const auto carried = call.carried(name + ".state");
    const auto before = carried.defined()
                            ? carried.to(type)
                            : torch::zeros({k.size(0), d_, 3}, k.options().requires_grad(false));
    const auto sums = before.narrow(2, 0, 2).unsqueeze(2);
    Tensor levels;  // (B, 1 + T, d), before each step and after the last
    {
      const torch::NoGradGuard no_gradient;
      const auto first = torch::minimum(k, now).narrow(1, 0, 1),
                 last = before.select(2, 2).unsqueeze(1);
      const auto start = torch::where((before.select(2, 1) > 0).unsqueeze(1), last, first);
      const auto fading = torch::arange(T, w.options()).unsqueeze(1) * w;
      const auto most = std::get<0>(torch::cummax(k - fading, 1));
      levels = torch::cat({start, torch::maximum(start + w, most) + fading}, 1);
    }
    const auto earlier = levels.narrow(1, 0, T), later = levels.narrow(1, 1, T);
    auto written = (k - later).exp(), fading = w + earlier - later;
    if (call.real.defined()) written = written * call.real, fading = fading * call.real;
    const auto pairs = torch::stack({v, torch::ones_like(v)}, 3);
    const auto out = gla_scan(
        {torch::ones_like(v).unsqueeze(3), written.unsqueeze(3), fading.unsqueeze(3), pairs, sums});
    if (call.state != nullptr) {
      const auto level =
          call.count.defined()
              ? levels.gather(
                    1, upload(call.count, k.device()).view({-1, 1, 1}).expand({-1, 1, d_}))
              : levels.narrow(1, T, 1);
      call.carry(name + ".state", torch::cat({out.state.squeeze(2), level.transpose(1, 2)}, 2));
    }
    const auto past = torch::cat({sums.transpose(1, 2), out.o.narrow(1, 0, T - 1)}, 1);
    const auto most = torch::maximum(earlier, now).detach();
    const auto all =
        past * (earlier - most).exp().unsqueeze(3) + pairs * (now - most).exp().unsqueeze(3);
    return all.select(3, 0) / all.select(3, 1);
  }

  Tensor decay_, bonus_;                       // (d)
  std::vector<std::shared_ptr<Linear>> maps_;  // of k, v, r
  std::shared_ptr<Linear> c_proj_;
};

class Rwkv4Network : public Rwkv4Part {
 public:
  Rwkv4Network(const ModelOptions& options, std::int64_t layer) : Rwkv4Part(options, layer, 2) {
    c_fc_ = add_matrix("c_fc", d_, options.shape.ffn_width(), false);
    r_ = add_matrix("r", d_, d_, false);
    c_proj_ = add_matrix("c_proj", options.shape.ffn_width(), d_, false);
  }
  void first_values() override { mix_.copy_(places(1).repeat({2})); }
  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto of = mixed(x, call, name + ".channel");
    const auto made = c_proj_->forward(torch::relu(c_fc_->forward(of(0))).square());
    return torch::sigmoid(r_->forward(of(1))) * made;
  }

 private:
  std::shared_ptr<Linear> c_fc_, r_, c_proj_;
};

}  // namespace

const MixerFacts rwkv4_mixer{.name = "rwkv4",
    .make = make_mixer<Rwkv4Mixer>,
    .second = MixerFacts::Second::own,
    .make_network = make_mixer<Rwkv4Network>,
    .first_norm = true};

}  // namespace nn
