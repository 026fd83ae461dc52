// Experts, compared with a plain loop in float64, values and gradients.

#include "nn/layers/block_stack.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

struct ExpertCase {
  std::int64_t count, per_token;
  bool normalised, gated, bias;
};

// Computes one token and one expert at a time.
Tensor experts_written_out(
    const nn::ExpertShape& shape, bool gated, const properties::Weights& weights, const Tensor& x) {
  const auto part = [&](const char* name, std::int64_t e) {
    const auto& all = weights[name];
    const auto rows = all.size(0) / shape.count;
    return all.slice(0, e * rows, (e + 1) * rows);
  };
  std::vector<Tensor> out;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    const auto scores = weights["router.weight"].mv(x[t]).exp();
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t e = 0; e < shape.count; ++e) order.emplace_back(-scores[e].item<double>(), e);
    std::sort(order.begin(), order.end());
    Tensor chosen = torch::zeros({}, x.options()), y = torch::zeros_like(x[t]);
    for (std::int64_t i = 0; i < shape.per_token; ++i) {
      const auto e = order[static_cast<std::size_t>(i)].second;
      auto inner = part("c_fc.weight", e).mv(x[t]);
      if (shape.bias) inner = inner + part("c_fc.bias", e);
      const auto first = inner.slice(0, 0, shape.width);
      auto active = first / (1 + (-first).exp());
      if (gated) active = active * inner.slice(0, shape.width, 2 * shape.width);
      auto given = part("c_proj.weight", e).mv(active);
      if (shape.bias) given = given + part("c_proj.bias", e);
      chosen = chosen + scores[e];
      y = y + scores[e] * given;
    }
    out.push_back(y / (shape.normalised ? chosen : scores.sum()));
  }
  return torch::stack(out);
}

}  // namespace

DOCTEST_TEST_CASE("experts are what a loop over tokens and experts makes: values and gradients") {
  for (const auto& of : {ExpertCase{5, 2, true, true, false}, ExpertCase{4, 3, false, true, true},
           ExpertCase{3, 3, true, false, true}, ExpertCase{1, 1, false, true, false},
           ExpertCase{9, 1, true, true, false}}) {
    DOCTEST_CAPTURE(of.count);
    torch::manual_seed(5);
    const nn::ExpertShape shape{6, 4, of.count, of.per_token, of.normalised, of.bias};
    nn::Experts experts(shape, {nn::Activation::silu, of.gated, 0});
    experts.to(torch::kFloat64);
    const auto weights = experts.named_parameters();
    {
      const torch::NoGradGuard no_grad;
      for (auto& weight : experts.parameters()) weight.normal_(0, 0.7);
    }
    const auto x = torch::randn({7, 6}, torch::kFloat64).set_requires_grad(true),
               direction = torch::randn({7, 6}, torch::kFloat64);
    std::vector<Tensor> inputs = {x};
    for (const auto& item : weights) inputs.push_back(item.value());
    const auto results = [&](const Tensor& y) {
      auto all = torch::autograd::grad({(y * direction).sum()}, inputs, {}, std::nullopt, false,
          /*allow_unused=*/true);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].defined()) all[i] = torch::zeros_like(inputs[i]);
      all.push_back(y.detach());
      return all;
    };
    const auto got = results(experts.forward(x.view({7, 1, 6})).flatten(0, 1)),
               want = results(experts_written_out(shape, of.gated, weights, x));
    DOCTEST_CHECK(got.size() == (of.bias ? 7 : 5));
    for (std::size_t i = 0; i < got.size(); ++i) {
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(gap(got[i], want[i]) < 1e-10);
    }
  }
}

DOCTEST_TEST_CASE("an expert that no token chose has a gradient of zeros") {
  torch::manual_seed(6);
  nn::Experts experts({4, 3, 8, 1, false, false}, {nn::Activation::silu, true, 0});
  {
    const torch::NoGradGuard no_grad;
    for (auto& weight : experts.parameters()) weight.normal_();
  }
  experts.forward(torch::randn({1, 4})).sum().backward();
  const auto weights = experts.named_parameters();
  for (const char* name : {"c_fc.weight", "c_proj.weight"}) {
    DOCTEST_REQUIRE(weights[name].grad().defined());
    const auto of_expert = weights[name].grad().unflatten(0, {8, -1}).flatten(1).abs().amax(1);
    DOCTEST_CHECK(of_expert.count_nonzero().item<std::int64_t>() == 1);
  }
  DOCTEST_CHECK(weights["router.weight"].grad().abs().max().item<double>() > 0);
}
