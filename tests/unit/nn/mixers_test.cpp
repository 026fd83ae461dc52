// Mixers compared with their recurrences written out token by token: mamba, kda, window, hybrids.

#include <doctest/doctest.h>

#include "properties.h"

namespace {

using properties::random_ids;
using torch::Tensor;

Tensor plain_swish(const Tensor& x) { return x / (1 + (-x).exp()); }
Tensor plain_softplus(const Tensor& x) { return (1 + x.exp()).log(); }
Tensor plain_squash(const Tensor& x) { return 1 / (1 + (-x).exp()); }
Tensor plain_gelu(const Tensor& x) {
  return x / 2 * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))).tanh());
}
Tensor plain_rms(const Tensor& x, const Tensor& weight) {
  return x / (x.square().mean() + 1e-5).sqrt() * weight;
}

// The weights of one module.
struct Part {
  const properties::Weights& w;
  std::string name;
  Tensor operator()(const char* part) const { return w[name + "." + part]; }
  Tensor map(const char* part, const Tensor& x) const {
    const auto y = w[name + "." + part + ".weight"].mv(x);
    const auto bias = name + "." + part + ".bias";
    return w.contains(bias) ? y + w[bias] : y;
  }
};

// A causal convolution of the newest inputs, the last of which is the current one.
Tensor plain_taps(const Part& of, const std::vector<Tensor>& inputs) {
  const auto taps = of("convolution.weight");
  auto sum = torch::zeros_like(inputs.back());
  for (std::int64_t back = 0; back < taps.size(1); ++back) {
    const auto at = static_cast<std::int64_t>(inputs.size()) - 1 - back;
    if (at >= 0)
      sum = sum + taps.select(1, taps.size(1) - 1 - back) * inputs[static_cast<std::size_t>(at)];
  }
  const auto bias = of.name + ".convolution.bias";
  return plain_swish(of.w.contains(bias) ? sum + of.w[bias] : sum);
}

Tensor plain_mamba_mixer(const Tensor& reads, const Part& of, std::int64_t n) {
  const auto width = of("skip").size(0);
  auto state = torch::zeros({width, n}, torch::kFloat64);
  const auto rates = -of("a_log").exp().view({width, n});
  std::vector<Tensor> inputs, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto both = of.map("c_in", reads[t]);
    inputs.push_back(both.narrow(0, 0, width));
    const auto x = plain_taps(of, inputs), chosen = of.map("c_select", x);
    const auto rank = chosen.size(0) - 2 * n;
    const auto dt = plain_softplus(of.map("dt_up", chosen.narrow(0, 0, rank)));
    state =
        (dt.unsqueeze(1) * rates).exp() * state + torch::outer(dt * x, chosen.narrow(0, rank, n));
    const auto y = state.mv(chosen.narrow(0, rank + n, n)) + of("skip") * x;
    out.push_back(of.map("c_proj", y * plain_swish(both.narrow(0, width, width))));
  }
  return torch::stack(out);
}

Tensor plain_kda_mixer(const Tensor& reads, const Part& of, std::int64_t heads) {
  const auto d = reads.size(1), wide = d / heads;
  std::vector<Tensor> states(
      static_cast<std::size_t>(heads), torch::zeros({wide, wide}, torch::kFloat64));
  std::vector<Tensor> inputs, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    inputs.push_back(of.map("c_in", reads[t]));
    const auto qkv = plain_taps(of, inputs);
    const auto beta = plain_squash(of.map("gates", reads[t]));
    const auto rate =
        plain_softplus(of.map("decay_up", of.map("decay_down", reads[t])) + of("a_bias"));
    std::vector<Tensor> y;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto own = [&](const Tensor& x) { return x.narrow(0, h * wide, wide); };
      const auto unit = [](const Tensor& x) { return x / (x.square().sum() + 1e-6).sqrt(); };
      const auto q = unit(own(qkv)) / std::sqrt(static_cast<double>(wide));
      const auto k = unit(own(qkv.narrow(0, d, d))), v = own(qkv.narrow(0, 2 * d, d));
      auto& s = states[static_cast<std::size_t>(h)];
      s = (-of("a_log")[h].exp() * own(rate)).exp().unsqueeze(1) * s;
      s = s - beta[h] * torch::outer(k, s.t().mv(k)) + beta[h] * torch::outer(k, v);
      y.push_back(plain_rms(s.t().mv(q), of("norm.weight")));
    }
    const auto gate = plain_squash(of.map("gate_up", of.map("gate_down", reads[t])));
    out.push_back(of.map("c_proj", torch::cat(y) * gate));
  }
  return torch::stack(out);
}

// Angles of absolute positions: the products depend on distances alone.
Tensor plain_turned(const Tensor& x, std::int64_t t) {
  const auto half = x.size(0) / 2;
  const auto a = x.narrow(0, 0, half), b = x.narrow(0, half, half);
  const auto angle =
      static_cast<double>(t) * torch::pow(10000.0, -torch::arange(half, torch::kFloat64) / half);
  return torch::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()});
}

Tensor plain_window_mixer(
    const Tensor& reads, const Part& of, std::int64_t heads, std::int64_t window) {
  const auto d = reads.size(1), wide = d / heads;
  std::vector<Tensor> all, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    all.push_back(of.map("c_attn", reads[t]));
    std::vector<Tensor> y;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto own = [&](std::int64_t s, std::int64_t which) {
        return all[static_cast<std::size_t>(s)].narrow(0, which * d + h * wide, wide);
      };
      std::vector<Tensor> scores, values;
      for (std::int64_t s = std::max<std::int64_t>(0, t - window + 1); s <= t; ++s) {
        scores.push_back(plain_turned(own(t, 0), t).dot(plain_turned(own(s, 1), s)) /
                         std::sqrt(static_cast<double>(wide)));
        values.push_back(own(s, 2));
      }
      y.push_back(torch::stack(values).t().mv(torch::stack(scores).softmax(0)));
    }
    out.push_back(of.map("c_proj", torch::cat(y)));
  }
  return torch::stack(out);
}

// Two layers with one mixer each.
nn::Hidden plain_stack(const Tensor& ids, const properties::Weights& w, const std::string& arch,
    const std::vector<std::string>& mixers, const nn::ModelOptions& options) {
  const auto heads = options.shape.heads;
  const auto norm = [&](const Tensor& x, const std::string& name) {
    const auto weight = w[name + ".weight"];
    if (!w.contains(name + ".bias")) {
      return x / (x.square().mean(1, true) + 1e-5).sqrt() * weight;
    }
    const auto centred = x - x.mean(1, true);
    return centred / (centred.square().mean(1, true) + 1e-5).sqrt() * weight + w[name + ".bias"];
  };
  auto x = w[arch + ".wte.weight"].index_select(0, ids) *
           std::sqrt(static_cast<double>(options.shape.d_model));
  nn::Hidden made;
  for (std::size_t i = 0; i < mixers.size(); ++i) {
    const auto layer = arch + ".h." + std::to_string(i);
    const Part of{w, layer + ".mixer"};
    made.key = norm(x, layer + ".ln_1");
    x = x + (mixers[i] == "mamba" ? plain_mamba_mixer(made.key, of, options.mixers.state)
                : mixers[i] == "kda"
                    ? plain_kda_mixer(made.key, of, heads)
                    : plain_window_mixer(made.key, of, heads, options.mixers.window));
    if (mixers[i] == "mamba") continue;
    made.key = norm(x, layer + ".ln_2");
    const Part network{w, layer + ".mlp"};
    std::vector<Tensor> rows;
    for (std::int64_t t = 0; t < x.size(0); ++t)
      rows.push_back(network.map("c_proj", plain_gelu(network.map("c_fc", made.key[t]))));
    x = x + torch::stack(rows);
  }
  made.output = norm(x, arch + ".ln_f");
  return made;
}

nn::ModelOptions mixer_options(const std::string& arch, std::int64_t window = 5) {
  auto options = properties::small_options(arch);
  options.mixers.state = 3, options.mixers.window = window;
  return options;
}

void check_mixers(const nn::ModelOptions& options, const std::vector<std::string>& mixers) {
  for (const std::int64_t steps : {1, 4, 9, 75}) {
    DOCTEST_CAPTURE(options.arch);
    DOCTEST_CAPTURE(steps);
    const auto plain = [&](const Tensor& ids, const properties::Weights& w) {
      return plain_stack(ids, w, options.arch, mixers, options);
    };
    DOCTEST_CHECK(
        properties::check_against_loops(options, plain, steps, torch::kFloat64, 1e-8) > 10);
    properties::check_against_loops(options, plain, steps, torch::kFloat32, 3e-3);
  }
}

}  // namespace

DOCTEST_TEST_CASE("mamba, kda and window equal their loops in values and gradients") {
  for (const std::string arch : {"mamba", "kda", "window"})
    check_mixers(mixer_options(arch), {arch, arch});
  check_mixers(mixer_options("window", 64), {"window", "window"});
  check_mixers(
      mixer_options("window", 16'000'000), {"window", "window"});  // of which a text has few
}

DOCTEST_TEST_CASE("a hybrid's layers have the mixers of its list, each with its own second half") {
  auto options = mixer_options("hybrid");
  options.shape.layers = 3, options.mixers.list = "mamba,window";
  check_mixers(options, {"mamba", "window", "mamba"});
  const torch::NoGradGuard no_gradient;
  const auto model = properties::strong_model(options);
  nn::State state;
  model->architecture->forward(properties::batch_of({random_ids(2, 1)}), &state);
  DOCTEST_CHECK(2 * model->state_bytes(2) == state.bytes());  // float64
}

DOCTEST_TEST_CASE("what a list of mixers cannot be is refused by name") {
  auto options = mixer_options("hybrid");
  options.mixers.list = "window,attention";
  DOCTEST_CHECK(properties::refusal(options).find("mixer: takes ") == 0);
  DOCTEST_CHECK(properties::refusal(options).find("not 'attention'") != std::string::npos);
  options = mixer_options("gla");
  options.mixers.list = "window";
  DOCTEST_CHECK(properties::refusal(options) == "mixer: requires arch hybrid, not gla");
  options = mixer_options("transformer");
  options.mixers.list = "window";
  DOCTEST_CHECK(properties::refusal(options) == "mixer: requires arch hybrid, not transformer");
}
