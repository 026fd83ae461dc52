// Mamba-2, compared with its recurrence written out token by token; its scan, whose heads share
// keys and queries, compared with the loop.

#include <doctest/doctest.h>

#include "nn/arch/mixer.h"
#include "nn/base/cuda.h"
#include "nn/ops/gla_scan.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

constexpr std::int64_t kWide = 12, kStateSize = 5, kTaps = 3;

nn::ModelOptions mamba2_options() {
  auto options = properties::small_options("mamba2");
  options.shape.d_model = 6, options.shape.heads = 3;
  options.mamba2.state = kStateSize, options.gla.convolution = kTaps;
  return options;
}

Tensor swished(const Tensor& x) { return x / (1 + (-x).exp()); }

// One layer's mixer: reads (T, 6) -> (T, 6).
Tensor plain_mamba2_mixer(
    const Tensor& reads, const properties::Weights& w, const std::string& name) {
  const auto at = [&](const char* part) { return w[name + part]; };
  const std::int64_t heads = 3, width = kWide / heads, mixed = kWide + 2 * kStateSize;
  std::vector<Tensor> states(3, torch::zeros({kStateSize, width}, torch::kFloat64)), past, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto all = at("c_in.weight").mv(reads[t]);
    past.push_back(all.narrow(0, kWide, mixed));
    auto sum = at("convolution.bias");
    for (std::int64_t back = 0; back < kTaps && back <= t; ++back)
      sum = sum + at("convolution.weight").select(1, kTaps - 1 - back) *
                      past[static_cast<std::size_t>(t - back)];
    sum = swished(sum);
    const auto b = sum.narrow(0, kWide, kStateSize),
               c = sum.narrow(0, kWide + kStateSize, kStateSize);
    std::vector<Tensor> y;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto x = sum.narrow(0, h * width, width);
      const auto rate = (1 + (all[kWide + mixed + h] + at("a_bias")[h]).exp()).log();
      auto& state = states[static_cast<std::size_t>(h)];
      state = (-at("a_log")[h].exp() * rate).exp() * state + torch::outer(rate * b, x);
      y.push_back(state.t().mv(c) + at("skip")[h] * x);
    }
    const auto gated = torch::cat(y) * swished(all.narrow(0, 0, kWide));
    const auto normed = gated / (gated.square().mean() + 1e-5).sqrt() * at("norm.weight");
    out.push_back(at("c_proj.weight").mv(normed));
  }
  return torch::stack(out);
}

nn::Hidden plain_mamba2(const Tensor& ids, const properties::Weights& w) {
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return x / (x.square().mean(1, true) + 1e-5).sqrt() * w["mamba2." + name + ".weight"];
  };
  auto x = w["mamba2.wte.weight"].index_select(0, ids) * std::sqrt(6.0);
  nn::Hidden made;
  for (const std::string h : {"h.0.", "h.1."}) {
    made.key = norm(x, h + "ln_1");
    x = x + plain_mamba2_mixer(made.key, w, "mamba2." + h + "mixer.");
  }
  made.output = norm(x, "ln_f");
  return made;
}

}  // namespace

DOCTEST_TEST_CASE("a mamba2 equals its recurrence in values and gradients, over chunks too") {
  for (const std::int64_t steps : {9, 150}) {
    DOCTEST_CAPTURE(steps);
    const auto compared = [&](torch::ScalarType type, double close) {
      return properties::check_against_loops(mamba2_options(), plain_mamba2, steps, type, close);
    };
    DOCTEST_CHECK(compared(torch::kFloat64, 1e-9) == 2 + 2 * 9);
    compared(torch::kFloat32, 1e-3);
    const nn::AsDevice device;
    compared(torch::kFloat64, 1e-9);
  }
}

DOCTEST_TEST_CASE("heads that share keys and decays that channels share: the scan is the loop") {
  torch::manual_seed(2);
  for (const std::int64_t steps : {1, 64, 150})
    for (const double rate : {0.01, 1.0, 200.0}) {  // up to decays that leave nothing
      const auto leaf = [](torch::IntArrayRef sizes, double size = 1) {
        return (size * torch::randn(sizes, torch::kFloat64)).detach().set_requires_grad(true);
      };
      const nn::GlaInput in{leaf({2, steps, 1, 5}), leaf({2, steps, 1, 5}),
          (-rate * torch::rand({2, steps, 3, 1}, torch::kFloat64)).set_requires_grad(true),
          leaf({2, steps, 3, 4}), leaf({2, 3, 5, 4})};
      const auto results = [&](const nn::GlaOutput& out) {
        torch::manual_seed(3);
        const auto of = [](const Tensor& like) {
          return torch::randn(like.sizes(), like.options());
        };
        const auto to_o = of(in.v), to_state = of(in.start);
        const auto loss = (out.o * to_o).sum() + (out.state * to_state).sum();
        auto all = torch::autograd::grad({loss}, {in.q, in.k, in.log_decay, in.v, in.start});
        all.push_back(out.o), all.push_back(out.state);
        return all;
      };
      const auto got = results(nn::gla_scan(in)), want = results(nn::gla_scan_plain(in));
      for (std::size_t i = 0; i < got.size(); ++i) {
        DOCTEST_CAPTURE(steps);
        DOCTEST_CAPTURE(rate);
        DOCTEST_CAPTURE(i);
        DOCTEST_CHECK(properties::gap(got[i], want[i]) < 1e-10);
      }
    }
}

DOCTEST_TEST_CASE(
    "a mamba2 carries a State of constant size and refuses heads that do not divide") {
  auto options = mamba2_options();
  const auto model = properties::strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  DOCTEST_CHECK(
      state.bytes() == 8 * 2 * (kStateSize * kWide + (kTaps - 1) * (kWide + 2 * kStateSize)));
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(52));
  options.shape.heads = 5;
  DOCTEST_CHECK(
      properties::refusal(options) == "heads: 5 does not divide 12, d-model times expand");
}
