// Mixers compared with their recurrences written out token by token: mamba, kda, window,
// gated-attention, a delta with heads of its own, hybrids.

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

// Gated attention over all earlier tokens, and the gated delta rule, in the shapes that Qwen 3.5
// gives them. Norms are rms-one.
Tensor plain_rms_one(const Tensor& x, const Tensor& weight) {
  return x / (x.square().mean() + 1e-5).sqrt() * (1 + weight);
}

Tensor plain_gated_attention(const Tensor& reads, const Part& of, const nn::ModelOptions& options) {
  const auto heads = options.shape.heads, kv_heads = options.transformer.kv_heads,
             wide = options.transformer.d_head;
  const auto turned =
      static_cast<std::int64_t>(static_cast<double>(wide) * options.transformer.rope.share);
  const auto turn = [&](const Tensor& x, std::int64_t t) {
    return torch::cat(
        {plain_turned(x.narrow(0, 0, turned), t), x.narrow(0, turned, wide - turned)});
  };
  std::vector<Tensor> keys, values, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto all = of.map("c_attn", reads[t]);
    keys.push_back(all.narrow(0, 2 * heads * wide, kv_heads * wide));
    values.push_back(all.narrow(0, (2 * heads + kv_heads) * wide, kv_heads * wide));
    std::vector<Tensor> y;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto q = turn(plain_rms_one(all.narrow(0, 2 * h * wide, wide), of("q_norm.weight")), t);
      const auto own = [&](const Tensor& x) {
        return x.narrow(0, h / (heads / kv_heads) * wide, wide);
      };
      std::vector<Tensor> scores, read;
      for (std::int64_t s = 0; s <= t; ++s) {
        const auto at = static_cast<std::size_t>(s);
        const auto k = turn(plain_rms_one(own(keys[at]), of("k_norm.weight")), s);
        scores.push_back(q.dot(k) / std::sqrt(static_cast<double>(wide)));
        read.push_back(own(values[at]));
      }
      y.push_back(torch::stack(read).t().mv(torch::stack(scores).softmax(0)) *
                  plain_squash(all.narrow(0, (2 * h + 1) * wide, wide)));
    }
    out.push_back(of.map("attn_proj", torch::cat(y)));
  }
  return torch::stack(out);
}

Tensor plain_delta_mixer(const Tensor& reads, const Part& of, const nn::GlaOptions& shape) {
  const auto keys = shape.key_heads * shape.d_key, values = shape.value_heads * shape.d_value;
  std::vector<Tensor> states(static_cast<std::size_t>(shape.value_heads),
      torch::zeros({shape.d_key, shape.d_value}, torch::kFloat64));
  std::vector<Tensor> inputs, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto all = of.map("c_in", reads[t]), gates = of.map("gates", reads[t]);
    inputs.push_back(all.narrow(0, 0, 2 * keys + values));
    const auto qkv = plain_taps(of, inputs);
    std::vector<Tensor> y;
    for (std::int64_t h = 0; h < shape.value_heads; ++h) {
      const auto from = h / (shape.value_heads / shape.key_heads) * shape.d_key;
      const auto unit = [&](std::int64_t begin) {
        const auto x = qkv.narrow(0, begin + from, shape.d_key);
        return x / (x.square().sum() + 1e-6).sqrt();
      };
      const auto q = unit(0) / std::sqrt(static_cast<double>(shape.d_key)), k = unit(keys);
      const auto v = qkv.narrow(0, 2 * keys + h * shape.d_value, shape.d_value);
      const auto beta = plain_squash(gates[h]);
      const auto rate = plain_softplus(gates[shape.value_heads + h] + of("a_bias")[h]);
      auto& s = states[static_cast<std::size_t>(h)];
      s = (-of("a_log")[h].exp() * rate).exp() * s;
      s = s + torch::outer(k, beta * (v - s.t().mv(k)));
      y.push_back(plain_rms(s.t().mv(q), of("norm.weight")));
    }
    out.push_back(
        of.map("c_proj", torch::cat(y) * plain_swish(all.narrow(0, 2 * keys + values, values))));
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
      if (options.transformer.norm_kind == "rms-one")
        return x / (x.square().mean(1, true) + 1e-5).sqrt() * (1 + weight);
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
    x = x + (mixers[i] == "mamba"      ? plain_mamba_mixer(made.key, of, options.mixers.state)
                : mixers[i] == "kda"   ? plain_kda_mixer(made.key, of, heads)
                : mixers[i] == "delta" ? plain_delta_mixer(made.key, of, options.gla)
                : mixers[i] == "gated-attention"
                    ? plain_gated_attention(made.key, of, options)
                    : plain_window_mixer(made.key, of, heads, options.mixers.window));
    if (mixers[i] == "mamba") continue;
    made.key = norm(x, layer + ".ln_2");
    const Part network{w, layer + ".mlp"};
    std::vector<Tensor> rows;
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      const auto inner = network.map("c_fc", made.key[t]);
      const auto half = inner.size(0) / 2;
      rows.push_back(network.map(
          "c_proj", options.transformer.feed_forward == "gated"
                        ? plain_gelu(inner.narrow(0, 0, half)) * inner.narrow(0, half, half)
                        : plain_gelu(inner)));
    }
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

namespace {

// As Qwen 3.5 has them: fewer heads of keys than of values, and attention with a gate.
nn::ModelOptions gated_hybrid() {
  auto options = mixer_options("hybrid");
  options.mixers.list = "delta,gated-attention";
  options.gla.key_heads = 2, options.gla.value_heads = 6, options.gla.d_key = 3,
  options.gla.d_value = 5;
  options.shape.heads = 4, options.transformer.kv_heads = 2, options.transformer.d_head = 8;
  options.transformer.rope.share = 0.5;
  options.transformer.norm_kind = "rms-one", options.transformer.feed_forward = "gated";
  return options;
}

}  // namespace

DOCTEST_TEST_CASE("gated attention, and a delta with heads of its own, equal their loops") {
  check_mixers(gated_hybrid(), {"delta", "gated-attention"});
}

DOCTEST_TEST_CASE(
    "a hybrid with attention carries all tokens, and forgets those of attention alone") {
  const torch::NoGradGuard no_gradient;
  const auto model = properties::strong_model(gated_hybrid());
  auto& architecture = *model->architecture;
  DOCTEST_CHECK(architecture.carry() == nn::Carry::forget);
  const auto ids = random_ids(23, 5);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return properties::batch_of({{ids.begin() + begin, ids.begin() + end}});
  };
  nn::State state;
  architecture.forward(part(0, 12), &state);
  DOCTEST_CHECK(2 * model->state_bytes(12) == state.bytes());  // float64
  const auto fixed = model->state_bytes(0);
  architecture.forget(state, 4);
  DOCTEST_CHECK(2 * model->state_bytes(4) == state.bytes());
  DOCTEST_CHECK(fixed > 0);
  const auto delta = state.tensors.at("h.0.state").clone();
  architecture.forget(state, 0);
  DOCTEST_CHECK(torch::equal(delta, state.tensors.at("h.0.state")));
}

DOCTEST_TEST_CASE("what a list of mixers cannot be is refused by name") {
  auto options = mixer_options("hybrid");
  options.mixers.list = "window,attention";
  DOCTEST_CHECK(properties::refusal(options).find("mixer: takes ") == 0);
  DOCTEST_CHECK(properties::refusal(options).find("not 'attention'") != std::string::npos);
  options.mixers.list = "window";
  options.transformer.kv_heads = 1;
  DOCTEST_CHECK(properties::refusal(options) == "kv-heads: requires arch transformer, not hybrid");
  options = gated_hybrid();
  options.gla.key_heads = 4;
  DOCTEST_CHECK(
      properties::refusal(options) == "delta-key-heads: 4 does not divide the 6 heads of values");
  options = mixer_options("gla");
  options.mixers.list = "window";
  DOCTEST_CHECK(properties::refusal(options) == "mixer: requires arch hybrid, not gla");
  options = mixer_options("transformer");
  options.mixers.list = "window";
  DOCTEST_CHECK(properties::refusal(options) == "mixer: requires arch hybrid, not transformer");
}
