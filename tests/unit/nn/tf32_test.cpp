#include "nn/base/cuda.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

// What a tensor core makes of a factor: rounded to 10 bits of mantissa.
torch::Tensor rounded(const torch::Tensor& x) {
  const auto bits = x.contiguous().view(torch::kInt32);
  return (bits + 0x1000).bitwise_and(~0x1fff).view(torch::kFloat32);
}

}  // namespace

DOCTEST_TEST_CASE("two TF32 products of queries with float16 keys are as exact as one of float32") {
  torch::manual_seed(1);
  const auto queries = torch::randn({40, 64}) * torch::randn({40, 1}).exp(),
             keys = torch::randn({50, 64}).to(torch::kFloat16).to(torch::kFloat32);
  const auto [high, low] = nn::tf32_parts(queries);
  DOCTEST_CHECK(torch::equal(high + low, queries));
  DOCTEST_CHECK(torch::equal(rounded(high), high));
  DOCTEST_CHECK(torch::equal(rounded(keys), keys));
  const auto exact = queries.to(torch::kFloat64).matmul(keys.to(torch::kFloat64).t()),
             size = queries.abs().to(torch::kFloat64).matmul(keys.abs().to(torch::kFloat64).t());
  const auto off = [&](const torch::Tensor& products) {
    return ((products.to(torch::kFloat64) - exact).abs() / size).max().item<double>();
  };
  DOCTEST_CHECK(off(rounded(high).matmul(keys.t()) + rounded(low).matmul(keys.t())) < 4e-7);
  DOCTEST_CHECK(off(rounded(queries).matmul(keys.t())) > 1e-5);
}

DOCTEST_TEST_CASE("parts of what is no number stay what they are") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto x = torch::tensor({kInfinity, -kInfinity, 0.0F, -1.5F, 1e-38F});
  const auto [high, low] = nn::tf32_parts(x);
  DOCTEST_CHECK(torch::equal(high + low, x));
  DOCTEST_CHECK(low.isfinite().all().item<bool>());
  DOCTEST_CHECK(nn::tf32_parts(torch::full({1}, std::nanf(""))).first.isnan().all().item<bool>());
}
