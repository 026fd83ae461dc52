// The fused block, compared with torch's own functions in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "nn/base/torch.h"
#include "nn/ops/fused_block.h"
#include "plain_kept.h"

namespace {

using torch::Tensor;

// The form of a block. The smallest form that differs from GPT-2's in all respects is a Llama.
struct Form {
  std::int64_t d = 24, inner = 40;
  nn::HeadShape heads{3, 3, 8, 0};
  bool bias = true, gated = false, rms = false;
  nn::InnerActivation activation = nn::InnerActivation::gelu;
  double attention_dropout = 0;
};
constexpr std::uint64_t kSeed = 0x1234567890abcdefu;  // of attention's dropout

std::vector<Tensor> weights_of(const Form& form) {
  const auto matrix = [](std::int64_t out, std::int64_t in) {
    return torch::randn({out, in}) / std::sqrt(double(in));
  };
  const auto vector = [&](std::int64_t n, bool there) {
    return there ? torch::randn({n}) * 0.1 : Tensor();
  };
  const auto d = form.d, all = form.heads.d_all(), query = form.heads.d_query(),
             wide = (form.gated ? 2 : 1) * form.inner;
  const bool bias = form.bias;
  return {1 + vector(d, true), vector(d, bias), matrix(all, d), vector(all, bias), matrix(d, query),
      vector(d, bias), 1 + vector(d, true), vector(d, bias), matrix(wide, d), vector(wide, bias),
      matrix(d, form.inner), vector(d, bias)};
}

nn::BlockWeights named(const std::vector<Tensor>& w) {
  return {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]};
}

// Returns the angles of this number of positions, from 0 on, or of `rows` sequences that begin
// elsewhere: float64.
Tensor angles_of(const Form& form, std::int64_t rows, std::int64_t steps) {
  const auto pairs = form.heads.rotated / 2;
  const auto first = torch::arange(rows, torch::kFloat64).view({rows, 1, 1, 1}) * 3;
  return (first + torch::arange(steps, torch::kFloat64).view({1, 1, steps, 1})) *
         torch::pow(100.0, -torch::arange(pairs, torch::kFloat64) / double(pairs));
}

nn::BlockShape shape_of(const Form& form, const Tensor& angles) {
  nn::BlockShape shape;
  shape.heads = form.heads;
  shape.attention_scale = 1 / std::sqrt(double(form.heads.width));
  shape.activation = form.activation;
  shape.gated = form.gated;
  shape.rms = form.rms;
  shape.attention_dropout = form.attention_dropout;
  shape.seed = kSeed;
  if (form.heads.rotated > 0) {
    shape.cos = angles.cos().to(torch::kFloat32);
    shape.sin = angles.sin().to(torch::kFloat32);
  }
  return shape;
}

// Returns (y, FFN input) in double.
std::pair<Tensor, Tensor> whole(
    const Tensor& x, const std::vector<Tensor>& w, const Form& form, const Tensor& angles) {
  const auto [heads, kv_heads, width, rotated] = form.heads;
  const std::int64_t rows = x.size(0), t = x.size(1), d = x.size(2);
  const auto norm = [&](const Tensor& v, const Tensor& scale, const Tensor& bias) {
    if (!form.rms) return torch::layer_norm(v, {d}, scale, bias, 1e-5);
    const Tensor y = v / (v.square().mean(-1, true) + 1e-5).sqrt() * scale;
    return bias.defined() ? y + bias : y;
  };
  const auto split = [&](const Tensor& y, std::int64_t n) {
    return y.reshape({rows, t, n, -1}).transpose(1, 2);
  };
  const auto turn = [&, pairs = rotated / 2](const Tensor& v) {
    const Tensor a = v.narrow(3, 0, pairs), b = v.narrow(3, pairs, pairs);
    return torch::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin(),
                          v.narrow(3, 2 * pairs, v.size(3) - 2 * pairs)},
        3);
  };
  const auto qkv =
      torch::linear(norm(x, w[0], w[1]), w[2], w[3])
          .split_with_sizes({form.heads.d_query(), form.heads.d_key(), form.heads.d_key()}, 2);
  const Tensor q = turn(split(qkv[0], heads));
  const Tensor k = turn(split(qkv[1], kv_heads)).repeat_interleave(heads / kv_heads, 1);
  const Tensor v = split(qkv[2], kv_heads).repeat_interleave(heads / kv_heads, 1);
  Tensor scores = q.matmul(k.transpose(2, 3)) / std::sqrt(double(width));
  scores = scores.masked_fill(torch::ones({t, t}, torch::kBool).triu(1), -1e30);
  const Tensor kept =
      plain::kept(rows, heads, t, t, nn::DropoutStream(form.attention_dropout, kSeed));
  const Tensor attended =
      (scores.softmax(3) * kept).matmul(v).transpose(1, 2).reshape({rows, t, -1});
  const Tensor middle = x + torch::linear(attended, w[4], w[5]);
  const Tensor input = norm(middle, w[6], w[7]);
  const Tensor hidden = torch::linear(input, w[8], w[9]);
  const Tensor first = form.gated ? hidden.narrow(2, 0, form.inner) : hidden;
  Tensor active = form.activation == nn::InnerActivation::gelu   ? torch::gelu(first, "tanh")
                  : form.activation == nn::InnerActivation::relu ? torch::relu(first)
                                                                 : torch::silu(first);
  if (form.gated) active = active * hidden.narrow(2, form.inner, form.inner);
  return {middle + torch::linear(active, w[10], w[11]), input};
}

double relative(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kFloat64) - b).abs().max().item<double>() /
         (1 + b.abs().max().item<double>());
}

}  // namespace

DOCTEST_TEST_CASE("the fused block equals the plain one in values and gradients") {
  using nn::InnerActivation;
  torch::manual_seed(11);
  std::vector<Form> forms;
  for (const bool bias : {true, false})
    for (const auto activation : {InnerActivation::gelu, InnerActivation::relu})
      forms.push_back({.bias = bias, .activation = activation});
  // Grouped queries, heads wider than the stream, rotary positions of the whole width and of a
  // part.
  const Form llama{.d = 20,
      .inner = 27,
      .heads = {4, 2, 6, 6},
      .bias = false,
      .gated = true,
      .rms = true,
      .activation = InnerActivation::silu};
  forms.push_back(llama);
  for (auto change : std::vector<std::function<void(Form&)>>{[](Form& f) { f.bias = true; },
           [](Form& f) {
             f.heads = {4, 1, 5, 2};
           },
           [](Form& f) { f.rms = false; }, [](Form& f) { f.gated = false; },
           [](Form& f) { f.activation = InnerActivation::gelu; }}) {
    forms.push_back(llama);
    change(forms.back());
  }
  for (const std::int64_t kv_heads : {4, 2}) {
    forms.push_back(llama);
    forms.back().heads = {4, kv_heads, 16, 4};
    forms.back().attention_dropout = 0.25;
  }
  for (const std::int64_t steps : {2, 63, 64, 200}) {
    for (const Form& form : forms) {
      DOCTEST_CAPTURE(steps);
      DOCTEST_CAPTURE(&form - forms.data());
      const std::int64_t rows = 3;
      auto w = weights_of(form);
      Tensor x = torch::randn({rows, steps, form.d});
      std::vector<Tensor> w64;
      for (Tensor& t : w) {
        w64.push_back(t.defined() ? t.to(torch::kFloat64).requires_grad_() : Tensor());
        if (t.defined()) t = t.detach().requires_grad_();
      }
      const Tensor x64 = x.to(torch::kFloat64).requires_grad_();
      x.requires_grad_();
      const Tensor a = torch::randn({rows, steps, form.d}), b = torch::randn({rows, steps, form.d});
      const auto angles = angles_of(form, steps == 64 ? 1 : rows, steps);
      const auto fused = nn::fused_block(x, named(w), shape_of(form, angles), true);
      const auto [y, input] = whole(x64, w64, form, angles);
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

DOCTEST_TEST_CASE("the fused block is strictly causal and the same whatever the threads") {
  torch::manual_seed(12);
  const Form form{.d = 32, .inner = 64, .heads = {2, 2, 16, 0}};
  const auto w = named(weights_of(form));
  const auto shape = shape_of(form, {});
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
    "the fused block's dropout: "
    "same seed same mask, kept share as asked, backward uses the mask of forward") {
  torch::manual_seed(13);
  const Form form{.d = 32, .inner = 64, .heads = {2, 2, 16, 0}};
  auto list = weights_of(form);
  for (std::size_t i : {4u, 10u}) list[i].zero_();  // the branches give only their bias
  list[5].fill_(1), list[11].fill_(1);
  const auto w = named(list);
  auto shape = shape_of(form, {});
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

  // Finite differences in one direction, in float32 with a large step on a linear path: the reduce
  // bias.
  list[11] = list[11].clone().requires_grad_();
  const auto with_grad = named(list);
  const Tensor loss = nn::fused_block(x, with_grad, shape, false).y.sum();
  loss.backward();
  const Tensor more = list[11].detach() + 1;
  list[11] = more;
  const double change =
      (nn::fused_block(x, named(list), shape, false).y.sum() - loss).item<double>();
  DOCTEST_CHECK(
      with_grad.reduce_bias.grad().sum().item<double>() == doctest::Approx(change).epsilon(1e-3));
}
