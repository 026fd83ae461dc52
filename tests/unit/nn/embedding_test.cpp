#include <doctest/doctest.h>

#include "nn/layers/embedding.h"
#include "plain_transformer.h"
#include "properties.h"

DOCTEST_TEST_CASE("bands cut the vocabulary and narrow by the factor, at least 1 wide") {
  const nn::Bands bands{267744, 1024, {20000, 60000}, 4};
  DOCTEST_CHECK(bands.count() == 3);
  DOCTEST_CHECK(bands.begin(0) == 0);
  DOCTEST_CHECK(bands.end(0) == 20000);
  DOCTEST_CHECK(bands.end(2) == 267744);
  DOCTEST_CHECK(bands.width(0) == 1024);
  DOCTEST_CHECK(bands.width(1) == 256);
  DOCTEST_CHECK(bands.width(2) == 64);
  DOCTEST_CHECK(nn::Bands{10, 8, {1, 2}, 20}.width(2) == 1);
  DOCTEST_CHECK(nn::Bands{10, 410, {1, 2}, 1}.width(2) == 410);
  DOCTEST_CHECK(nn::Bands{10, 3072, {1, 2}, 4, 1024}.width(2) == 64);
}

DOCTEST_TEST_CASE(
    "an adaptive embedding gives each word its band's row, projected, with gradients") {
  torch::manual_seed(2);
  nn::ModelOptions options;
  options.vocabulary.cutoffs = {3, 8};
  nn::Embedding embedding({13, 8, {3, 8}, 2}, 3.0);
  plain::Weights weights;
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : embedding.named_parameters()) weights[item.key()] = item.value().normal_();
  }
  embedding.to(torch::kFloat64);
  const auto ids = torch::tensor({{12, 0, 3, 7}, {8, 2, 12, 12}}, torch::kInt64);
  const auto out = embedding.forward(ids);
  DOCTEST_CHECK(out.sizes() == torch::IntArrayRef({2, 4, 8}));
  std::vector<torch::Tensor> rows;
  for (std::int64_t i = 0; i < 8; ++i)
    rows.push_back(
        plain::word_vector(options, weights, "", ids.flatten()[i].item<std::int64_t>()) * 3);
  const auto expected = torch::stack(rows).view({2, 4, 8});
  DOCTEST_CHECK((out - expected).abs().max().item<double>() < 1e-12);

  const auto direction = torch::randn_like(out);
  const auto gradients = [&](const torch::Tensor& x) {
    embedding.zero_grad();
    (x * direction).sum().backward();
    std::vector<torch::Tensor> all;
    for (const auto& weight : embedding.parameters()) all.push_back(weight.grad().clone());
    return all;
  };
  const auto got = gradients(out), want = gradients(expected);
  for (std::size_t i = 0; i < got.size(); ++i)
    DOCTEST_CHECK((got[i] - want[i]).abs().max().item<double>() < 1e-12);
}

DOCTEST_TEST_CASE("a band without a word in the batch costs nothing and breaks nothing") {
  nn::Embedding embedding({13, 8, {3, 8}, 2});
  const auto out = embedding.forward(torch::tensor({1, 2}, torch::kInt64));
  out.sum().backward();
  DOCTEST_CHECK(out.sizes() == torch::IntArrayRef({2, 8}));
  DOCTEST_CHECK(
      embedding.forward(torch::empty({0}, torch::kInt64)).sizes() == torch::IntArrayRef({0, 8}));
}
