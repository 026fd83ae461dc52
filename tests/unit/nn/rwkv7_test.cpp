// RWKV-7, compared with its recurrence written out token by token as published.

#include <doctest/doctest.h>

#include "nn/arch/mixer.h"
#include "nn/ops/rank_one_scan.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

constexpr std::int64_t kGooseHeads = 2, kGooseHead = 4, kGooseWidth = kGooseHeads * kGooseHead;

Tensor plain_sigmoid(const Tensor& x) { return 1 / (1 + (-x).exp()); }

Tensor plain_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  const auto centred = x - x.mean();
  return centred / (centred.square().mean() + epsilon).sqrt() * weight + bias;
}

// A layer's time mixing, token by token: S maps keys to values, (value, key).
class PlainTimeMixing {
 public:
  PlainTimeMixing(const properties::Weights& w, const std::string& name) : w_(w), name_(name) {}

  // `first`: v of layer 0, which layer 0 sets.
  Tensor next(const Tensor& x, Tensor& first) {
    const auto mixed = [&](std::int64_t m) {
      return x + (last_ - x) * at("mix").narrow(0, m * kGooseWidth, kGooseWidth);
    };
    const auto r = at("r.weight").mv(mixed(0)), x_v = mixed(3), x_w = mixed(1);
    auto k = at("k.weight").mv(mixed(2)), v = at("v.weight").mv(x_v);
    const auto w = (-plain_sigmoid(at("w_up.weight").mv(at("w_down.weight").mv(x_w).tanh()) +
                                   at("w_up.bias")) /
                    std::exp(0.5))
                       .exp();
    if (!first.defined()) first = v;
    else
      v = v + (first - v) * plain_sigmoid(at("v_up.weight").mv(at("v_down.weight").mv(x_v)) +
                                          at("v_up.bias"));
    const auto a =
        plain_sigmoid(at("a_up.weight").mv(at("a_down.weight").mv(mixed(4))) + at("a_up.bias"));
    const auto g = at("g_up.weight").mv(plain_sigmoid(at("g_down.weight").mv(mixed(5))));
    const auto removed = k * at("key_removed");
    k = k + k * (a - 1) * at("key_added");
    last_ = x;
    std::vector<Tensor> out;
    for (std::int64_t h = 0; h < kGooseHeads; ++h) {
      const auto own = [&](const Tensor& of) { return of.narrow(0, h * kGooseHead, kGooseHead); };
      const auto kk = own(removed) / own(removed).square().sum().sqrt();
      auto& s = states_[static_cast<std::size_t>(h)];
      s = s * own(w).unsqueeze(0) - torch::outer(s.mv(kk), kk * own(a)) +
          torch::outer(own(v), own(k));
      const auto y =
          plain_layer_norm(s.mv(own(r)), own(at("norm.weight")), own(at("norm.bias")), 64e-5);
      out.push_back(y + (own(r) * own(k) * own(at("bonus"))).sum() * own(v));
    }
    return at("c_proj.weight").mv(torch::cat(out) * g);
  }

 private:
  Tensor at(const char* part) const { return w_[name_ + part]; }

  const properties::Weights& w_;
  std::string name_;
  Tensor last_ = torch::zeros({kGooseWidth}, torch::kFloat64);
  std::vector<Tensor> states_ =
      std::vector<Tensor>(kGooseHeads, torch::zeros({kGooseHead, kGooseHead}, torch::kFloat64));
};

nn::Hidden plain_rwkv7(const Tensor& ids, const properties::Weights& w) {
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return plain_layer_norm(x, w["rwkv7." + name + ".weight"], w["rwkv7." + name + ".bias"], 1e-5);
  };
  const std::vector<std::string> layers = {"h.0.", "h.1."};
  std::vector<PlainTimeMixing> mixings;
  for (const auto& h : layers) mixings.emplace_back(w, "rwkv7." + h + "mixer.");
  std::vector<Tensor> last(2, torch::zeros({kGooseWidth}, torch::kFloat64)), f, g;
  for (std::int64_t t = 0; t < ids.size(0); ++t) {
    auto x = norm(w["rwkv7.wte.weight"][ids[t].item<std::int64_t>()] * std::sqrt(8.0), "ln_0");
    Tensor first, read;
    for (std::size_t i = 0; i < 2; ++i) {
      x = x + mixings[i].next(norm(x, layers[i] + "ln_1"), first);
      read = norm(x, layers[i] + "ln_2");
      const auto at = [&](const char* part) { return w["rwkv7." + layers[i] + "mlp." + part]; };
      const auto inner = at("c_fc.weight").mv(read + (last[i] - read) * at("mix")).clamp_min(0);
      x = x + at("c_proj.weight").mv(inner.square());
      last[i] = read;
    }
    f.push_back(norm(x, "ln_f"));
    g.push_back(read);
  }
  return {torch::stack(f), torch::stack(g)};
}

}  // namespace

DOCTEST_TEST_CASE("an rwkv7 equals its recurrence in values and gradients, over chunks too") {
  for (const std::int64_t steps : {7, 75}) {
    DOCTEST_CAPTURE(steps);
    const auto compared = [&](torch::ScalarType type, double close) {
      return properties::check_against_loops(
          properties::small_options("rwkv7"), plain_rwkv7, steps, type, close);
    };
    // Embedding, two norms, then each layer's norms, mixing and network; layer 0 has no lora_v.
    DOCTEST_CHECK(
        compared(torch::kFloat64, 1e-9) == 1 + 2 * 2 + 2 * (4 + 1 + 3 + 8 + 3 + 2 + 1 + 3) + 3);
    compared(torch::kFloat32, 2e-3);
  }
}

DOCTEST_TEST_CASE(
    "the scan of a decay by channel and one direction is the loop, whatever the chunks") {
  torch::manual_seed(2);
  for (const std::int64_t steps : {1, 32, 33, 100}) {
    const auto leaf = [](torch::IntArrayRef sizes) {
      return torch::randn(sizes, torch::kFloat64).set_requires_grad(true);
    };
    auto direction = torch::randn({2, steps, 3, 5}, torch::kFloat64);
    direction = direction / direction.norm(2, -1, /*keepdim=*/true);
    const nn::RankOneInput in{leaf({2, steps, 3, 5}), leaf({2, steps, 3, 5}),
        (-direction).detach().set_requires_grad(true),
        (direction * torch::rand({2, steps, 3, 5}, torch::kFloat64)).set_requires_grad(true),
        (-torch::rand({2, steps, 3, 5}, torch::kFloat64)).set_requires_grad(true),
        leaf({2, steps, 3, 4}), leaf({2, 3, 5, 4})};
    const auto loop = [&] {
      auto state = in.start;
      std::vector<Tensor> out;
      for (std::int64_t t = 0; t < steps; ++t) {
        const auto column = [&](const Tensor& x) { return x.select(1, t).unsqueeze(3); };
        const auto seen = (column(in.a) * state).sum(2, true);
        state = column(in.log_decay).exp() * state + column(in.b) * seen +
                column(in.k) * in.v.select(1, t).unsqueeze(2);
        out.push_back((column(in.q) * state).sum(2));
      }
      return nn::RankOneOutput{torch::stack(out, 1), state};
    };
    const auto results = [&](const nn::RankOneOutput& out) {
      torch::manual_seed(3);
      const auto of = [](const Tensor& like) { return torch::randn(like.sizes(), like.options()); };
      const auto to_o = of(in.v), to_state = of(in.start);
      const auto loss = (out.o * to_o).sum() + (out.state * to_state).sum();
      auto all =
          torch::autograd::grad({loss}, {in.q, in.k, in.a, in.b, in.log_decay, in.v, in.start});
      all.push_back(out.o), all.push_back(out.state);
      return all;
    };
    const auto got = results(nn::rank_one_scan(in)), want = results(loop());
    for (std::size_t i = 0; i < got.size(); ++i) {
      DOCTEST_CAPTURE(steps);
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(properties::gap(got[i], want[i]) < 1e-10);
    }
  }
}

DOCTEST_TEST_CASE("the ranks of an rwkv7 are those of the released models") {
  using Ranks = std::vector<std::int64_t>;
  DOCTEST_CHECK(nn::rwkv7_ranks(768) == Ranks{64, 64, 32, 128});
  DOCTEST_CHECK(nn::rwkv7_ranks(2048) == Ranks{96, 96, 64, 256});
  DOCTEST_CHECK(nn::rwkv7_ranks(2560) == Ranks{96, 96, 64, 320});
}

DOCTEST_TEST_CASE(
    "an rwkv7 carries a State of constant size and refuses heads that do not divide") {
  auto options = properties::small_options("rwkv7");
  const auto model = properties::strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  DOCTEST_CHECK(state.bytes() == 8 * 2 * (kGooseHeads * kGooseHead * kGooseHead + 2 * kGooseWidth));
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(52));
  options.shape.heads = 3;
  DOCTEST_CHECK(properties::refusal(options) == "heads: 3 does not divide d-model 8");
}
