// Hyena, compared with its convolution as a sum over all steps before; the convolution by itself.

#include <doctest/doctest.h>

#include "nn/base/recomputing.h"
#include "nn/ops/long_convolution.h"
#include "plain_layers.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

// Step j of a filter of `length` steps, (d).
Tensor plain_filter(std::int64_t j, std::int64_t length, const plain::Module& of) {
  const auto place = length > 1 ? static_cast<double>(j) / static_cast<double>(length - 1) : 0;
  std::vector<double> features = {place}, sines;
  for (int band = 0; band < 16; ++band) {
    const double frequency = 1e-4 + (15 - 1e-4) * band / 15,
                 angle =
                     frequency * 2 * M_PI * static_cast<double>(j) / static_cast<double>(length);
    features.push_back(std::cos(angle)), sines.push_back(-std::sin(angle));
  }
  features.insert(features.end(), sines.begin(), sines.end());
  auto x = torch::tensor(features, torch::kFloat64);
  for (const char* const part : {"filter_in", "filter_1", "filter_2"})
    x = (of("frequency") * of.map(part, x)).sin();
  x = of.map("filter_out", x);
  std::vector<double> fades;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const auto share = static_cast<double>(i) / static_cast<double>(x.size(0) - 1);
    fades.push_back(std::exp(-place * std::log(100) * ((1 - share) / 1.5 + share / 0.3)));
  }
  return x * torch::tensor(fades, torch::kFloat64);
}

Tensor plain_hyena_mixer(const Tensor& reads, const plain::Module& of, std::int64_t length) {
  const auto d = reads.size(1);
  const bool shorts = of.w.contains(of.name + ".convolution.weight");
  std::vector<Tensor> mixed, z, filter, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    mixed.push_back(of.map("c_in", reads[t]));
    const auto qkv = shorts
                         ? plain::newest(mixed, of("convolution.weight")) + of("convolution.bias")
                         : mixed.back();
    z.push_back(qkv.narrow(0, d, d) * qkv.narrow(0, 2 * d, d));
    if (t < length) filter.push_back(plain_filter(t, length, of));
    auto sum = of("skip") * z.back();
    for (std::int64_t j = 0; j <= t && j < length; ++j)
      sum = sum + filter[static_cast<std::size_t>(j)] * z[static_cast<std::size_t>(t - j)];
    out.push_back(of.map("c_proj", qkv.narrow(0, 0, d) * sum));
  }
  return torch::stack(out);
}

}  // namespace

DOCTEST_TEST_CASE("a hyena equals its sums in values and gradients, by transforms too") {
  auto options = properties::small_options("hyena");
  for (const auto& [length, taps] : {std::pair(40, 4), {5, 3}, {1, 4}, {200, 1}})
    for (const std::int64_t steps : {1, 9, 32, 75}) {
      DOCTEST_CAPTURE(length);
      DOCTEST_CAPTURE(steps);
      options.mixers.filter = length, options.gla.convolution = taps;
      const auto plain_hyena = [&](const Tensor& ids, const properties::Weights& w) {
        return plain::two_layers(
            ids, w, "hyena", [&](const Tensor& reads, const plain::Module& of) {
              return plain_hyena_mixer(reads, of, options.mixers.filter);
            });
      };
      const auto compared = [&](torch::ScalarType type, double close) {
        return properties::check_against_loops(options, plain_hyena, steps, type, close);
      };
      // Embedding, last norm, then each layer's norms, maps, filter and network.
      DOCTEST_CHECK(
          compared(torch::kFloat64, 1e-9) == 1 + 2 + 2 * (4 + 4 + (taps > 1 ? 2 : 0) + 7 + 2 + 4));
      compared(torch::kFloat32, 3e-3);
    }
}

DOCTEST_TEST_CASE("a hyena follows its weights from call to call and carries what it plans") {
  auto options = properties::small_options("hyena");
  const auto model = properties::strong_model(options),
             other = properties::strong_model(options, 2);
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of({random_ids(50, 1)});
  model->architecture->forward(batch, nullptr);
  const auto theirs = other->named_weights();
  for (std::size_t i = 0; i < theirs.size(); ++i) {  // one weight after the other
    Tensor(model->named_weights()[i].second).copy_(theirs[i].second);
    model->architecture->forward(batch, nullptr);
  }
  nn::State state;
  const auto got = model->architecture->forward(batch, &state);
  DOCTEST_CHECK(torch::equal(got.output, other->architecture->forward(batch, nullptr).output) ==
                false);  // a longer transform rounds otherwise
  DOCTEST_CHECK(
      properties::gap(got.output, other->architecture->forward(batch, nullptr).output) < 1e-11);
  DOCTEST_CHECK(state.bytes() == 8 * 2 * 8 * (options.mixers.filter - 1 + 3 * 3));
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(50));
}

DOCTEST_TEST_CASE("a long convolution is its sum, whatever the lengths") {
  torch::manual_seed(3);
  for (const std::int64_t all : {1, 5, 40, 130})
    for (const std::int64_t taps : {1, 4, 60, 200})
      for (const std::int64_t steps : {1L, 3L, 32L, 33L, 97L, 130L}) {
        if (steps > all) continue;
        DOCTEST_CAPTURE(all);
        DOCTEST_CAPTURE(taps);
        DOCTEST_CAPTURE(steps);
        const auto x = torch::randn({2, all, 3}, torch::kFloat64).set_requires_grad(true),
                   filter = torch::randn({3, taps}, torch::kFloat64).set_requires_grad(true),
                   to = torch::randn({2, steps, 3}, torch::kFloat64);
        std::vector<Tensor> sums;
        for (auto t = all - steps; t < all; ++t) {
          auto sum = torch::zeros({2, 3}, torch::kFloat64);
          for (std::int64_t j = 0; j <= t && j < taps; ++j)
            sum = sum + filter.select(1, j) * x.select(1, t - j);
          sums.push_back(sum);
        }
        const auto want = torch::stack(sums, 1), got = nn::long_convolution(x, filter, steps);
        DOCTEST_CHECK(properties::gap(got, want) < 1e-12);
        const auto slopes = [&](const Tensor& y) {
          return torch::autograd::grad({(y * to).sum()}, {x, filter});
        };
        const auto d_got = slopes(got), d_want = slopes(want);
        for (std::size_t i = 0; i < 2; ++i)
          DOCTEST_CHECK(properties::gap(d_got[i], d_want[i]) < 1e-12);
        const auto rounded = nn::long_convolution(x.to(torch::kBFloat16), filter, steps);
        DOCTEST_CHECK((rounded.scalar_type() == torch::kFloat32));
      }
}

DOCTEST_TEST_CASE(
    "under autocast rwkv4, s4d, h3 and hyena decode as they read, with float32 sums") {
  for (const std::string arch : {"rwkv4", "s4d", "h3", "hyena"}) {
    DOCTEST_CAPTURE(arch);
    const auto model = properties::strong_model(properties::small_options(arch));
    model->to(torch::kFloat32);
    const auto ids = random_ids(60, 3);
    const auto exact = model->architecture->forward(batch_of({ids}), nullptr);
    const nn::Autocast autocast(true, torch::kCPU);
    const auto whole = model->architecture->forward(batch_of({ids}), nullptr);
    (whole.output.sum() + whole.key.sum()).backward();
    for (const auto& item : model->named_parameters())
      DOCTEST_CHECK(item.value().grad().isfinite().all().item<bool>());
    const torch::NoGradGuard no_gradient;
    nn::State state;
    std::vector<Tensor> parts;
    for (std::int64_t t = 0; t < 60; ++t)
      parts.push_back(model->architecture
                          ->forward(batch_of({{ids[static_cast<std::size_t>(t)]}}, t == 0), &state)
                          .output);
    const auto far = [&](const Tensor& a) {
      return (a - exact.output).square().mean().sqrt().item<double>();
    };
    DOCTEST_CHECK(far(whole.output) < 0.1);
    DOCTEST_CHECK(far(torch::cat(parts, 1)) < 0.1);
    for (const auto& [name, tensor] : state.tensors)
      if (name.find(".state") != std::string::npos)
        DOCTEST_CHECK((tensor.scalar_type() == torch::kFloat32));
  }
}
