// Sliding-window attention in blocks, compared with attention with a mask.

#include "nn/layers/attention.h"

#include <doctest/doctest.h>

#include "properties.h"

DOCTEST_TEST_CASE("attention in bands is attention with a mask, values and gradients") {
  for (const std::int64_t steps : {1, 4, 5, 7, 8, 13}) {
    torch::manual_seed(1);
    const auto draw = [&] {
      return torch::randn({2, 3, steps, 5}, torch::kFloat64).requires_grad_();
    };
    const auto q = draw(), k = draw(), v = draw(), to = torch::randn_like(q);
    const auto gradients = [&](const torch::Tensor& y) {
      (y * to).sum().backward();
      std::vector<torch::Tensor> all{y.detach()};
      for (const auto& x : {q, k, v}) {
        all.push_back(x.grad().clone());
        x.mutable_grad().reset();
      }
      return all;
    };
    nn::Visibility visibility;
    visibility.mask = torch::full({steps, steps}, nn::kHidden, torch::kFloat64);
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t s = std::max<std::int64_t>(0, t - 3); s <= t; ++s)
        visibility.mask[t][s] = 0;
    const auto got = gradients(nn::attend_band(q, k, v, 4, 0, {.scale = .7})),
               want = gradients(nn::attend(q, k, v, visibility, 0, {.scale = .7}));
    DOCTEST_CAPTURE(steps);
    for (std::size_t i = 0; i < 4; ++i) DOCTEST_CHECK(properties::gap(got[i], want[i]) < 1e-12);
  }
}
