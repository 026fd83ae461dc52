// A short convolution and its swish: the CPU loop and torch's operators, compared with sums written
// out, values and gradients.

#include "nn/ops/swish_convolution.h"

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

Tensor swish_written_out(
    const Tensor& x, const Tensor& past, const Tensor& weight, const Tensor& bias, bool swish) {
  const auto taps = weight.size(1);
  std::vector<Tensor> steps;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    auto z = torch::zeros_like(x.select(1, t));
    for (std::int64_t back = 0; back < taps; ++back)
      z = z + weight.select(1, taps - 1 - back) *
                  (t >= back ? x.select(1, t - back) : past.select(1, taps - 1 + t - back));
    if (bias.defined()) z = z + bias;
    steps.push_back(swish ? z * torch::sigmoid(z) : z);
  }
  return torch::stack(steps, 1);
}

void check_convolution(
    std::int64_t steps, std::int64_t taps, bool sliced, bool biased, bool swish = true) {
  torch::manual_seed(7);
  const auto leaf = [](torch::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kFloat64).set_requires_grad(true);
  };
  const auto x = leaf({3, steps, sliced ? 17 : 9}), past = leaf({3, taps - 1, 9}),
             weight = leaf({9, taps}), bias = biased ? leaf({9}) : Tensor(),
             direction = torch::randn({3, steps, 9}, torch::kFloat64);
  const auto results = [&](const auto& convolution) {
    const auto y = convolution(x.narrow(2, 0, 9), past, weight, bias, swish);
    std::vector<Tensor> leaves = {x, past, weight};
    if (biased) leaves.push_back(bias);
    auto all = torch::autograd::grad({(y * direction).sum()}, leaves);
    all.push_back(y.detach());
    return all;
  };
  const auto got = results(nn::swish_convolution), want = results(swish_written_out);
  for (std::size_t i = 0; i < got.size(); ++i) {
    DOCTEST_CAPTURE(i);
    DOCTEST_CHECK(got[i].sizes() == want[i].sizes());
    DOCTEST_CHECK(gap(got[i], want[i]) < 1e-12);
  }
}

}  // namespace

DOCTEST_TEST_CASE("a short convolution and its swish: values and gradients") {
  for (const std::int64_t steps : {1, 2, 3, 20})
    for (const std::int64_t taps : {2, 4, 7})
      for (const bool sliced : {false, true})
        for (const bool biased : {false, true}) {
          DOCTEST_CAPTURE(steps);
          DOCTEST_CAPTURE(taps);
          check_convolution(steps, taps, sliced, biased);
          check_convolution(steps, taps, sliced, biased, /*swish=*/false);
          const nn::AsDevice device;
          check_convolution(steps, taps, sliced, biased);
          check_convolution(steps, taps, sliced, biased, /*swish=*/false);
        }
}
