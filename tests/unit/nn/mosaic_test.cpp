// Memory Mosaics, compared with plain loops from the paper's equations.

#include <doctest/doctest.h>

#include "nn/arch/mosaic.h"
#include "nn/layers/attention.h"
#include "nn/ops/leaky.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using properties::Weights;
using torch::Tensor;

constexpr std::int64_t kHeads = 2, kMosaicWidth = 4;

nn::ModelOptions mosaic_options() {
  auto options = properties::small_options("mosaic");
  options.mosaic.persistent_slots = 5;
  return options;
}

Tensor unit_vector(const Tensor& x) { return x / x.square().sum().sqrt(); }

/// Returns x (T, d) times rows [row, row + kMosaicWidth) of a matrix: a map's output for head h.
Tensor mapped(const Tensor& x, const Tensor& matrix, std::int64_t row) {
  return torch::matmul(x, matrix.narrow(0, row, kMosaicWidth).t());
}

/// Returns the leaky averages of one head, (T, kMosaicWidth), not normalised, as sums over the
/// past.
Tensor averages(const Tensor& x, const Tensor& decay) {
  std::vector<Tensor> all;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    auto sum = torch::zeros({kMosaicWidth}, torch::kFloat64);
    for (std::int64_t s = 0; s <= t; ++s)
      sum = sum + (-(decay * 10).abs()).exp().pow(static_cast<double>(t - s)) * x[s];
    all.push_back(sum);
  }
  return torch::stack(all);
}

/// Maps x (T, d) to (T, d). Adds to `last` the weights that the last token gives each earlier pair,
/// (heads, T - 1).
Tensor contextual(
    const Tensor& x, const Weights& w, const std::string& unit, std::vector<Tensor>& last) {
  const auto steps = x.size(0), d = x.size(1);
  std::vector<Tensor> heads, shares;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const auto sums =
        averages(mapped(x, w[unit + "maps.weight"], h * kMosaicWidth), w[unit + "decay"][h]);
    const auto u = mapped(x, w[unit + "maps.weight"], d + h * kMosaicWidth);
    const auto scale = (w[unit + "key_scale"][h] * 10).clamp_max(5).exp();
    const auto mix = w[unit + "mix"][h];
    std::vector<Tensor> y, weights;
    for (std::int64_t t = 0; t < steps; ++t) {
      weights.clear();
      auto top = torch::zeros({kMosaicWidth}, torch::kFloat64),
           bottom = torch::zeros({}, torch::kFloat64);
      for (std::int64_t s = 0; s < t; ++s) {
        const auto weight = (scale * scale * unit_vector(sums[t]).dot(unit_vector(sums[s]))).exp();
        const auto value = (w[unit + "value_scale"][h] * 10).exp() *
                           unit_vector(mix * u[s] + (1 - mix) * u[s + 1]);
        top = top + weight * value;
        bottom = bottom + weight;
        weights.push_back(weight);
      }
      y.push_back(t == 0 ? top : top / bottom);
    }
    heads.push_back(torch::stack(y));
    const auto given = torch::stack(weights);
    shares.push_back(given / given.sum());
  }
  last.push_back(torch::stack(shares));
  return torch::matmul(torch::cat(heads, 1), w[unit + "c_proj.weight"].t());
}

Tensor persistent(const Tensor& x, const Weights& w, const std::string& unit) {
  std::vector<Tensor> heads;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const auto sums =
        averages(mapped(x, w[unit + "map.weight"], h * kMosaicWidth), w[unit + "decay"][h]);
    const auto scale = (w[unit + "key_scale"][h] * 10).clamp_max(5).exp().square();
    const auto keys = w[unit + "memory_keys"][h], values = w[unit + "memory_values"][h];
    std::vector<Tensor> y;
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      auto top = torch::zeros({kMosaicWidth}, torch::kFloat64),
           bottom = torch::zeros({}, torch::kFloat64);
      for (std::int64_t s = 0; s < keys.size(0); ++s) {
        const auto weight = (scale * unit_vector(sums[t]).dot(keys[s])).exp();
        top = top + weight * values[s];
        bottom = bottom + weight;
      }
      y.push_back((w[unit + "value_scale"][h] * 10).exp() * top / bottom);
    }
    heads.push_back(torch::stack(y));
  }
  return torch::matmul(torch::cat(heads, 1), w[unit + "c_proj.weight"].t());
}

/// The whole architecture on one row: f (T, d), g, and the attention of the last token.
struct PlainMosaic : nn::Hidden {
  std::vector<Tensor> last;
};
PlainMosaic plain_mosaic(const Tensor& ids, const Weights& w, std::int64_t layers) {
  const auto layer_norm = [&](const Tensor& x, const std::string& name) {
    const auto weight = w["mosaic." + name + ".weight"];
    const auto mean = x.mean(1, true), variance = (x - mean).square().mean(1, true);
    return (x - mean) / (variance + 1e-5).sqrt() * weight;
  };
  auto x = w["mosaic.wte.weight"].index_select(0, ids) * std::sqrt(8.0);
  PlainMosaic made;
  auto& g = made.key;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto h = "h." + std::to_string(i) + ".";
    x = x + contextual(layer_norm(x, h + "ln_1"), w, "mosaic." + h + "contextual.", made.last);
    g = layer_norm(x, h + "ln_2");
    x = x + persistent(g, w, "mosaic." + h + "persistent.");
  }
  made.output = layer_norm(x, "ln_f") / std::sqrt(8.0);
  return made;
}

}  // namespace

DOCTEST_TEST_CASE("a mosaic equals the equations' loops, values and gradients") {
  const auto loops = [](const Tensor& ids, const Weights& w) -> nn::Hidden {
    return plain_mosaic(ids, w, 2);
  };
  properties::check_against_loops(mosaic_options(), loops, 9, torch::kFloat64, 1e-10);
  properties::check_against_loops(mosaic_options(), loops, 9, torch::kFloat32, 1e-5);
}

DOCTEST_TEST_CASE("a watcher sees what the last token of a mosaic attends to") {
  const auto model = properties::strong_model(mosaic_options());
  const auto ids = random_ids(9, 5);
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> seen;
  dynamic_cast<nn::WatchedAttention&>(*model->architecture).watch([&](const Tensor& w) {
    seen.push_back(w);
  });
  model->architecture->forward(batch_of({random_ids(9, 4), ids}), nullptr);
  const auto expected = plain_mosaic(torch::tensor(ids), model->named_parameters(), 2).last;
  DOCTEST_REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    DOCTEST_CHECK((seen[i][1] - expected[i]).abs().max().item<double>() < 1e-10);
}

DOCTEST_TEST_CASE("leaky keys and mixed values have the derivatives that differences give") {
  torch::manual_seed(1);
  const auto draw = [](torch::IntArrayRef sizes) {
    return torch::rand(sizes, torch::kFloat64).add_(.1).requires_grad_();
  };
  const auto x = draw({2, 5, 6}), decay = draw({3}), scale = draw({3}), before = draw({2, 6});
  const auto mix = draw({3}), to_keys = torch::randn({2, 5, 6}, torch::kFloat64);
  const auto to_sums = torch::randn_like(to_keys);
  const auto score = [&] {
    const auto made = nn::leaky_keys(x, decay, scale, before, true);
    const auto values = nn::mixed_values(x, mix, scale);
    return (made.keys * to_keys + made.sums * to_sums).sum() +
           (values * to_keys.narrow(1, 0, 4)).sum();
  };
  score().backward();
  for (const auto& input : {x, decay, scale, before, mix}) {
    const torch::NoGradGuard no_grad;
    auto flat = input.view({-1});
    const auto gradient = input.grad().view({-1});
    for (std::int64_t i = 0; i < flat.size(0); ++i) {
      constexpr double kStep = 1e-5;
      flat[i] += kStep;
      const auto above = score().item<double>();
      flat[i] -= 2 * kStep;
      const auto below = score().item<double>();
      flat[i] += kStep;
      DOCTEST_CHECK(gradient[i].item<double>() ==
                    doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-6));
    }
  }
}

DOCTEST_TEST_CASE(
    "attention to slots that all rows share is softmax(q k^T) v, values and gradients") {
  // Three tiles, full and partial blocks of rows, a wide and a narrow part of a head's width.
  constexpr std::int64_t kSlots = 900, kLong = 145, kWide = 80;
  torch::manual_seed(2);
  const auto draw = [](torch::IntArrayRef sizes, double spread) {
    return torch::randn(sizes).mul_(spread).requires_grad_();
  };
  // Scores up to 20, with larger ones in later tiles: earlier sums must be rescaled.
  const auto q = draw({2, kLong, kHeads * kWide}, .8), k = draw({kHeads, kSlots, kWide}, .6),
             v = draw({kHeads, kSlots, kWide}, 1), to_y = torch::randn_like(q);
  {
    const torch::NoGradGuard no_grad;
    k.narrow(1, 600, 300).mul_(2);
  }
  const auto queries = q.view({1, 2 * kLong, kHeads, kWide}).transpose(1, 2);
  const auto y = nn::attend(queries, k.unsqueeze(0), v.unsqueeze(0), {}, 0, {1, 0})
                     .transpose(1, 2)
                     .reshape(q.sizes());
  (y * to_y).sum().backward();
  std::vector<Tensor> exact;
  for (const auto& x : {q, k, v}) exact.push_back(x.detach().to(torch::kFloat64).requires_grad_());
  const auto scores =
      torch::einsum("bthw,hsw->bths", {exact[0].view({2, kLong, kHeads, kWide}), exact[1]});
  const auto plain = torch::einsum("bths,hsw->bthw", {scores.softmax(-1), exact[2]});
  (plain.reshape(y.sizes()) * to_y).sum().backward();
  DOCTEST_CHECK((y - plain.reshape(y.sizes())).abs().max().item<double>() < 5e-5);
  for (const auto& [got, want] : {std::pair{q, exact[0]}, {k, exact[1]}, {v, exact[2]}}) {
    const auto size = std::max(1.0, want.grad().abs().max().item<double>());
    DOCTEST_CHECK((got.grad() - want.grad()).abs().max().item<double>() < 5e-5 * size);
  }
}

DOCTEST_TEST_CASE("a mosaic that forgets keeps that many tokens' pairs") {
  const auto model = properties::strong_model(mosaic_options());
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

DOCTEST_TEST_CASE("a mosaic begins as the paper's does") {
  auto options = mosaic_options();
  options.shape.init = "fan-in";
  options.shape.d_model = 128;
  const nn::Model model(options, 50);
  const auto weights = model.named_parameters();
  const auto spread = [&](const std::string& name) { return weights[name].std().item<double>(); };
  DOCTEST_CHECK(weights["mosaic.h.0.contextual.decay"][0].item<float>() == doctest::Approx(.05));
  DOCTEST_CHECK(weights["mosaic.h.1.persistent.decay"][1].item<float>() == doctest::Approx(.5));
  DOCTEST_CHECK(
      weights["mosaic.h.0.contextual.value_scale"][0].item<float>() == doctest::Approx(-.05));
  const auto near = [](double value) { return doctest::Approx(value).epsilon(.05); };
  DOCTEST_CHECK(spread("mosaic.h.0.contextual.maps.weight") == near(1 / std::sqrt(128.0)));
  DOCTEST_CHECK(spread("mosaic.h.0.contextual.c_proj.weight") == near(1 / 16.0));
  DOCTEST_CHECK(spread("mosaic.wte.weight") == near(1 / std::sqrt(128.0)));
  DOCTEST_CHECK(spread("mosaic.h.0.persistent.memory_values") == near(1 / 8.0));
}

DOCTEST_TEST_CASE("a block of a mosaic has the parameters of a GPT-2 block without biases") {
  nn::ModelOptions mosaic, gpt2;
  for (auto* const options : {&mosaic, &gpt2}) {
    options->shape.layers = 1;
    options->shape.d_model = 768;
    options->shape.heads = 12;
  }
  mosaic.arch = "mosaic";
  gpt2.transformer.bias = false;
  gpt2.transformer.positions = "none";
  // In addition: one decay, key scale and value scale per head of each unit, and one mix per head
  // of the contextual unit.
  DOCTEST_CHECK(nn::parameter_count(mosaic, 100) == nn::parameter_count(gpt2, 100) + 7 * 12);
}
