// The fused block against the same block written with torch's own functions in double precision.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/base/torch.h"
#include "nn/ops/fused_block.h"

namespace {

using torch::Tensor;

std::vector<Tensor> weights_of(std::int64_t d, std::int64_t inner, bool bias) {
  const auto matrix = [](std::int64_t out, std::int64_t in) {
    return torch::randn({out, in}) / std::sqrt(double(in));
  };
  const auto vector = [&](std::int64_t n, bool there) {
    return there ? torch::randn({n}) * 0.1 : Tensor();
  };
  return {1 + vector(d, true), vector(d, bias),     matrix(3 * d, d),    vector(3 * d, bias),
          matrix(d, d),        vector(d, bias),     1 + vector(d, true), vector(d, bias),
          matrix(inner, d),    vector(inner, bias), matrix(d, inner),    vector(d, bias)};
}

nn::BlockWeights named(const std::vector<Tensor>& w) {
  return {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]};
}

// (y, FFN input), in double.
std::pair<Tensor, Tensor> plain(const Tensor& x, const std::vector<Tensor>& w, std::int64_t heads,
                                bool gelu) {
  const std::int64_t rows = x.size(0), t = x.size(1), d = x.size(2);
  const auto norm = [&](const Tensor& v, const Tensor& scale, const Tensor& bias) {
    return torch::layer_norm(v, {d}, scale, bias, 1e-5);
  };
  const auto split = torch::linear(norm(x, w[0], w[1]), w[2], w[3])
                         .view({rows, t, 3, heads, d / heads})
                         .permute({2, 0, 3, 1, 4});
  Tensor scores = split[0].matmul(split[1].transpose(2, 3)) / std::sqrt(double(d / heads));
  scores = scores.masked_fill(torch::ones({t, t}, torch::kBool).triu(1), -1e30);
  const Tensor attended = scores.softmax(3).matmul(split[2]).transpose(1, 2).reshape({rows, t, d});
  const Tensor middle = x + torch::linear(attended, w[4], w[5]);
  const Tensor input = norm(middle, w[6], w[7]);
  const Tensor hidden = torch::linear(input, w[8], w[9]);
  const Tensor active = gelu ? torch::gelu(hidden, "tanh") : torch::relu(hidden);
  return {middle + torch::linear(active, w[10], w[11]), input};
}

double relative(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kFloat64) - b).abs().max().item<double>() /
         (1 + b.abs().max().item<double>());
}

}  // namespace

DOCTEST_TEST_CASE("the fused block equals the plain one in values and gradients") {
  torch::manual_seed(11);
  for (const std::int64_t steps : {2, 63, 64, 200}) {
    for (const bool bias : {true, false}) {
      for (const bool gelu : {true, false}) {
        DOCTEST_CAPTURE(steps);
        DOCTEST_CAPTURE(bias);
        DOCTEST_CAPTURE(gelu);
        const std::int64_t d = 24, heads = 3, inner = 40, rows = 3;
        auto w = weights_of(d, inner, bias);
        Tensor x = torch::randn({rows, steps, d});
        std::vector<Tensor> w64;
        for (Tensor& t : w) {
          w64.push_back(t.defined() ? t.to(torch::kFloat64).requires_grad_() : Tensor());
          if (t.defined()) t = t.detach().requires_grad_();
        }
        const Tensor x64 = x.to(torch::kFloat64).requires_grad_();
        x.requires_grad_();
        const Tensor a = torch::randn({rows, steps, d}), b = torch::randn({rows, steps, d});
        nn::BlockShape shape;
        shape.heads = heads;
        shape.gelu = gelu;
        const auto fused = nn::fused_block(x, named(w), shape, true);
        const auto [y, input] = plain(x64, w64, heads, gelu);
        DOCTEST_CHECK(relative(fused.y.detach(), y.detach()) < 1e-5);
        DOCTEST_CHECK(relative(fused.ffn_input.detach(), input.detach()) < 1e-5);
        ((fused.y * a).sum() + (fused.ffn_input * b).sum()).backward();
        ((y * a).sum() + (input * b).sum()).backward();
        DOCTEST_CHECK(relative(x.grad(), x64.grad()) < 1e-5);
        for (std::size_t i = 0; i < w.size(); ++i) {
          if (!w[i].defined()) continue;
          DOCTEST_CAPTURE(i);
          DOCTEST_CHECK(relative(w[i].grad(), w64[i].grad()) < 2e-5);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("the fused block is strictly causal and the same whatever the threads") {
  torch::manual_seed(12);
  const auto w = named(weights_of(32, 64, true));
  nn::BlockShape shape;
  shape.heads = 2;
  const Tensor x = torch::randn({4, 70, 32});
  const Tensor y = nn::fused_block(x, w, shape, false).y;
  Tensor changed = x.clone();
  changed.slice(1, 40).normal_();
  DOCTEST_CHECK(
      torch::equal(nn::fused_block(changed, w, shape, false).y.slice(1, 0, 40), y.slice(1, 0, 40)));
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  DOCTEST_CHECK(torch::equal(nn::fused_block(x, w, shape, false).y, y));
  at::set_num_threads(threads);
}

DOCTEST_TEST_CASE(
    "the fused block's dropout: same seed same mask, kept share as asked, backward uses the mask "
    "of forward") {
  torch::manual_seed(13);
  auto list = weights_of(32, 64, true);
  for (std::size_t i : {4u, 10u}) list[i].zero_();  // the branches give their bias alone
  list[5].fill_(1), list[11].fill_(1);
  const auto w = named(list);
  nn::BlockShape shape;
  shape.heads = 2;
  shape.residual_dropout = 0.25;
  shape.seed = 7;
  const Tensor x = torch::zeros({4, 512, 32});
  const Tensor y = nn::fused_block(x, w, shape, false).y;  // 0, 1/0.75 or 2/0.75 each
  DOCTEST_CHECK(torch::equal(nn::fused_block(x, w, shape, false).y, y));
  DOCTEST_CHECK(y.mean().item<double>() == doctest::Approx(2.0).epsilon(0.01));
  const double both = (y > 2).to(torch::kFloat64).mean().item<double>();
  DOCTEST_CHECK(both == doctest::Approx(0.5625).epsilon(0.02));
  shape.seed = 8;
  DOCTEST_CHECK(!torch::equal(nn::fused_block(x, w, shape, false).y, y));

  // Finite differences along one direction, in float32 with a large step on a linear path: the
  // reduce bias.
  list[11] = list[11].clone().requires_grad_();
  const auto with_grad = named(list);
  const Tensor loss = nn::fused_block(x, with_grad, shape, false).y.sum();
  loss.backward();
  const Tensor more = list[11].detach() + 1;
  list[11] = more;
  const double change =
      (nn::fused_block(x, named(list), shape, false).y.sum() - loss).item<double>();
  DOCTEST_CHECK(with_grad.reduce_bias.grad().sum().item<double>() ==
                doctest::Approx(change).epsilon(1e-3));
}
