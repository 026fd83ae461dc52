// Memory Mosaics v2, compared with plain loops from the paper's equations.

#include <doctest/doctest.h>

#include "nn/arch/mosaic2.h"
#include "nn/base/cuda.h"
#include "nn/ops/leaky.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;
using Weights2 = properties::Weights;

constexpr std::int64_t kNear = 4, kDelay = 3, kParts = 2, kPart = 4;  // two heads of four

nn::ModelOptions mosaic2_options() {
  auto options = properties::small_options("mosaic2");
  options.mosaic2.short_term = kNear;
  options.mosaic2.delay = kDelay;
  options.mosaic2.most_delay = 5;
  return options;
}

Tensor of_norm_one(const Tensor& x) { return x / x.square().sum().sqrt(); }

/// Returns the keys of one head, step by step: x (T, kPart), gate and decay (T).
std::vector<Tensor> plain_keys(const Tensor& x, const Tensor& gate, const Tensor& decay) {
  std::vector<Tensor> keys;
  auto average = torch::zeros({x.size(1)}, torch::kFloat64);
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    average = gate[t].exp() * x[t] + (-decay[t].abs()).exp() * average;
    keys.push_back(of_norm_one(average));
  }
  return keys;
}

/// One memory: token t sees pairs first(t) to last(t). Maps x (T, d) to (T, d).
template <class First, class Last>
Tensor plain_memory(const Tensor& x, const Weights2& w, const std::string& unit, const First& first,
    const Last& last) {
  const auto steps = x.size(0), d = x.size(1);
  const auto rows = [&](const std::string& name, std::int64_t from, std::int64_t n) {
    return torch::matmul(x, w[unit + name].narrow(0, from, n).t());
  };
  std::vector<Tensor> heads;
  for (std::int64_t h = 0; h < kParts; ++h) {
    const auto gates = rows("gates.weight", h, 1).squeeze(1),
               decays = rows("gates.weight", kParts + h, 1).squeeze(1);
    const auto keys = plain_keys(rows("maps.weight", h * kPart, kPart), gates, decays);
    const auto u = rows("maps.weight", d + h * kPart, kPart);
    const auto mix = w[unit + "mix"][h];
    std::vector<Tensor> y;
    for (std::int64_t t = 0; t < steps; ++t) {
      auto top = torch::zeros({kPart}, torch::kFloat64), bottom = torch::zeros({}, torch::kFloat64);
      const std::int64_t begin = first(t), end = last(t) + 1;
      const auto n = static_cast<double>(end - begin);
      for (std::int64_t s = begin; s < end; ++s) {
        const auto beta =
            w[unit + "beta_1"][h].clamp_max(10).exp() *
                torch::tensor(n, torch::kFloat64).pow(w[unit + "alpha"][h].abs().clamp_max(1)) +
            w[unit + "beta_0"][h].clamp_max(10).exp();
        const auto weight = (beta * keys[t].dot(keys[s])).exp();
        top = top + weight * w[unit + "value_scale"][h].abs().clamp_max(15).exp() *
                        of_norm_one(mix * u[s] + (1 - mix) * u[s + 1]);
        bottom = bottom + weight;
      }
      y.push_back(begin < end ? top / bottom : top);
    }
    heads.push_back(torch::stack(y));
  }
  return torch::matmul(torch::cat(heads, 1), w[unit + "c_proj.weight"].t());
}

/// The whole architecture on one row: f (T, d) and g.
nn::Hidden plain_mosaic2(const Tensor& ids, const Weights2& w, std::int64_t layers) {
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return x / (x.square().mean(1, true) + 1e-5).sqrt() * w["mosaic2." + name + ".weight"];
  };
  auto x = w["mosaic2.wte.weight"].index_select(0, ids) * std::sqrt(8.0);
  nn::Hidden made;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto h = "h." + std::to_string(i) + ".", full = "mosaic2." + h;
    const auto read = norm(x, h + "ln_1");
    x = x +
        plain_memory(
            read, w, full + "short_term.",
            [](std::int64_t t) { return std::max<std::int64_t>(0, t - kNear); },
            [](std::int64_t t) { return t - 1; }) +
        plain_memory(
            read, w, full + "long_term.", [](std::int64_t) { return std::int64_t{0}; },
            [](std::int64_t t) { return std::max<std::int64_t>(-1, t - kDelay); });
    made.key = norm(x, h + "ln_2");
    const auto inner = torch::matmul(made.key, w[full + "mlp.c_fc.weight"].t()).chunk(2, 1);
    x = x +
        torch::matmul(inner[0] * inner[0].sigmoid() * inner[1], w[full + "mlp.c_proj.weight"].t());
  }
  made.output = norm(x, "ln_f");
  return made;
}

void check_mosaic2_against_loops(torch::ScalarType type, double close) {
  const auto loops = [](const Tensor& ids, const Weights2& w) { return plain_mosaic2(ids, w, 2); };
  const auto compared = properties::check_against_loops(mosaic2_options(), loops, 11, type, close);
  DOCTEST_CHECK(compared == 2 + 2 * (2 * 8 + 4));  // of two layers with two memories each
}

}  // namespace

DOCTEST_TEST_CASE("a mosaic2 equals the equations' loops, values and gradients") {
  check_mosaic2_against_loops(torch::kFloat64, 1e-10);
  check_mosaic2_against_loops(torch::kFloat32, 2e-5);
}

DOCTEST_TEST_CASE("so it does by torch's operators, as on a device") {
  const nn::AsDevice device;
  check_mosaic2_against_loops(torch::kFloat64, 1e-10);
}

DOCTEST_TEST_CASE(
    "gated keys are a plain loop's, by the kernel and in chunks, values and gradients") {
  // More than two chunks, the last one short; the carried sums are strongly scaled down.
  constexpr std::int64_t kLong = 150;
  torch::manual_seed(1);
  const auto draw = [](torch::IntArrayRef sizes, double spread) {
    return torch::randn(sizes, torch::kFloat64).mul_(spread).requires_grad_();
  };
  const auto x = draw({2, kLong, 6}, 1), gate = draw({2, kLong, 3}, 2),
             raw = draw({2, kLong, 3}, .2), sums = draw({2, 6}, 1);
  const auto levels = torch::tensor({{.5, -3., 4.}, {0., 1., -2.}}, torch::kFloat64);
  const auto to_keys = torch::randn({2, kLong, 6}, torch::kFloat64);
  const auto to_last = torch::randn({2, 6}, torch::kFloat64);
  std::vector<Tensor> scores;
  std::vector<std::vector<Tensor>> gradients;
  const auto gather = [&](const Tensor& score) {
    scores.push_back(score.detach());
    gradients.emplace_back();
    for (const auto& input : {x, gate, raw, sums}) {
      gradients.back().push_back(input.grad().clone());
      input.mutable_grad().reset();
    }
  };
  const auto own = [&](const auto& function) {
    const auto made = function(x, gate, -raw.abs(), nn::GatedSums{sums, levels}, true);
    // Sums times e^level do not depend on the levels.
    const auto last = made.sums.select(1, kLong - 1).view({2, 3, 2}) *
                      made.levels.select(1, kLong - 1).exp().unsqueeze(2);
    const auto score = (made.keys * to_keys).sum() + (last.view({2, 6}) * to_last).sum();
    score.backward();
    gather(score);
  };
  own([](const auto&... in) { return nn::gated_keys(in...); });
  own([](const auto&... in) { return nn::gated_keys_chunks(in...); });
  auto average = (sums.view({2, 3, 2}) * levels.exp().unsqueeze(2));
  auto plain = torch::zeros({}, torch::kFloat64);
  for (std::int64_t t = 0; t < kLong; ++t) {
    average = gate.select(1, t).exp().unsqueeze(2) * x.select(1, t).view({2, 3, 2}) +
              (-raw.select(1, t).abs()).exp().unsqueeze(2) * average;
    const auto key = average / average.square().sum(2, true).sqrt();
    plain = plain + (key.reshape({2, 6}) * to_keys.select(1, t)).sum();
  }
  plain = plain + (average.reshape({2, 6}) * to_last).sum();
  plain.backward();
  gather(plain);
  for (std::size_t way = 0; way < 2; ++way) {
    DOCTEST_CAPTURE(way);
    DOCTEST_CHECK(properties::gap(scores[way], scores[2]) < 1e-10);
    for (std::size_t i = 0; i < 4; ++i)
      DOCTEST_CHECK(properties::gap(gradients[way][i], gradients[2][i]) < 1e-9);
  }
}

DOCTEST_TEST_CASE("gates of any size give finite keys and gradients, in float32 too") {
  torch::manual_seed(2);
  for (const bool chunks : {false, true}) {
    const auto x = torch::randn({1, 70, 4}).requires_grad_(),
               gate = torch::randn({1, 70, 2}).mul_(300).requires_grad_(),
               decay = (-torch::randn({1, 70, 2}).mul(200).abs()).detach().requires_grad_();
    const auto made = chunks ? nn::gated_keys_chunks(x, gate, decay, {}, true)
                             : nn::gated_keys(x, gate, decay, {}, true);
    made.keys.square().mul(torch::rand_like(x)).sum().backward();
    DOCTEST_CHECK(made.keys.isfinite().all().item<bool>());
    const auto norms = made.keys.view({70, 2, 2}).square().sum(2);
    DOCTEST_CHECK((norms - 1).abs().max().item<double>() < 1e-4);
    for (const auto& input : {x, gate, decay})
      DOCTEST_CHECK(input.grad().isfinite().all().item<bool>());
  }
}

DOCTEST_TEST_CASE("a fresh row's first key stands however small its gate is") {
  // Level 0 of a row of zeros has no meaning.
  for (const bool chunks : {false, true}) {
    const auto x = torch::tensor({{{3., 4.}}}, torch::kFloat64),
               gate = torch::full({1, 1, 1}, -60., torch::kFloat64), decay = gate * 0;
    const nn::GatedSums zeros{
        torch::zeros({1, 2}, torch::kFloat64), torch::zeros({1, 1}, torch::kFloat64)};
    const auto made = chunks ? nn::gated_keys_chunks(x, gate, decay, zeros, true)
                             : nn::gated_keys(x, gate, decay, zeros, true);
    DOCTEST_CHECK(made.keys[0][0][1].item<double>() == doctest::Approx(.8));
  }
}

DOCTEST_TEST_CASE("in training a mosaic2 draws its delay, evenly from the range, by torch's seed") {
  auto options = mosaic2_options();
  options.shape.layers = 1;
  const auto model = properties::strong_model(options);
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of({random_ids(9, 7)});
  const auto at_delay = [&](std::int64_t delay) {
    auto fixed = options;
    fixed.mosaic2.delay = delay;
    return properties::strong_model(fixed)->architecture->forward(batch, nullptr).output;
  };
  const std::vector<Tensor> expected = {at_delay(3), at_delay(4), at_delay(5)};
  DOCTEST_CHECK(torch::equal(model->architecture->forward(batch, nullptr).output, expected[0]));
  model->train();
  std::vector<std::int64_t> times(3);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    torch::manual_seed(seed);
    const auto f = model->architecture->forward(batch, nullptr).output;
    torch::manual_seed(seed);
    DOCTEST_CHECK(torch::equal(f, model->architecture->forward(batch, nullptr).output));
    for (std::size_t i = 0; i < 3; ++i) times[i] += torch::equal(f, expected[i]);
  }
  DOCTEST_CHECK(times[0] + times[1] + times[2] == 60);
  for (const auto n : times) DOCTEST_CHECK(n > 8);
}

DOCTEST_TEST_CASE("a mosaic2 that forgets keeps that many tokens' pairs and counts these") {
  const auto model = properties::strong_model(mosaic2_options());
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(20, 1)}), &state);
  model->architecture->forget(state, 6);
  DOCTEST_CHECK(state.tensors["valid"]
                    .narrow(1, state.counts["begin"], state.counts["end"] - state.counts["begin"])
                    .sum()
                    .item<std::int64_t>() == 5);
  const auto after = model->architecture->forward(batch_of({random_ids(3, 2)}, false), &state);
  DOCTEST_CHECK(after.output.isfinite().all().item<bool>());
}

DOCTEST_TEST_CASE("a mosaic2 begins as the paper's does") {
  auto options = mosaic2_options();
  options.shape.init = "depth";
  options.shape.d_model = 128, options.shape.d_ff = 384;
  const nn::Model model(options, 50);
  const auto weights = model.named_parameters();
  const auto near = [](double value) { return doctest::Approx(value).epsilon(.05); };
  const auto first = [&](const std::string& name) {
    return weights["mosaic2.h.1.long_term." + name][1].item<float>();
  };
  DOCTEST_CHECK(first("beta_0") == 1.5f);
  DOCTEST_CHECK(first("beta_1") == 1.5f);
  DOCTEST_CHECK(first("alpha") == doctest::Approx(1. / 3));
  DOCTEST_CHECK(first("value_scale") == 0);
  const auto check_spread = [&](const std::string& name, double spread) {
    DOCTEST_CAPTURE(name);
    const auto& w = weights["mosaic2." + name + ".weight"];
    DOCTEST_CHECK(w.std().item<double>() == near(spread));
    DOCTEST_CHECK(w.abs().max().item<double>() <= 3.0001 * spread);
  };
  check_spread("wte", 1 / 16.);
  check_spread("h.0.short_term.maps", 1 / 16.);
  check_spread("h.1.short_term.maps", 1 / std::sqrt(512.));
  check_spread("h.1.long_term.c_proj", 1 / std::sqrt(512.));
  check_spread("h.1.mlp.c_fc", 1 / std::sqrt(512.));
  check_spread("h.1.mlp.c_proj", 1 / std::sqrt(2 * 384 * 2.));
}

DOCTEST_TEST_CASE("a mosaic2 of the paper's large shape has the parameters that it reports") {
  nn::ModelOptions options;
  options.arch = "mosaic2";
  options.shape.layers = 32;
  options.shape.d_model = 4096;
  options.shape.heads = 32;
  options.shape.d_ff = 14336;
  options.vocabulary.tied = false;
  const auto count = static_cast<double>(nn::parameter_count(options, 128256));
  DOCTEST_CHECK(count / 1e9 == doctest::Approx(9.9).epsilon(.005));
}

DOCTEST_TEST_CASE("a mosaic2 refuses delays that no draw can meet") {
  auto options = mosaic2_options();
  options.mosaic2.most_delay = 2;
  DOCTEST_CHECK(
      properties::refusal(options) == "long-term-delay-most: 2 is less than long-term-delay 3");
}
