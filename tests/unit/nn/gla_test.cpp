// Gated linear attention: the fused recurrence against its loop, the model against its formulas,
// written out token by token.

#include "nn/arch/gla.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"
#include "nn/ops/gla_scan.h"
#include "plain_transformer.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::gap;
using properties::random_ids;
using properties::strong_model;
using torch::Tensor;

// o, the last state, then the gradients of q, k, log_decay, v and the first state.
std::vector<Tensor> results(nn::GlaOutput (*scan)(const nn::GlaInput&), torch::ScalarType type,
                            std::int64_t steps, std::int64_t d_key, std::int64_t d_value) {
  torch::manual_seed(3);
  const auto leaf = [&](torch::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kFloat64).to(type).set_requires_grad(true);
  };
  const nn::GlaInput in{
      leaf({2, steps, 3, d_key}), leaf({2, steps, 3, d_key}),
      (-0.3 * torch::rand({2, steps, 3, d_key}, torch::kFloat64)).to(type).set_requires_grad(true),
      leaf({2, steps, 3, d_value}), leaf({2, 3, d_key, d_value})};
  const auto out = scan(in);
  torch::manual_seed(4);
  const auto direction = [](const Tensor& like) {
    return torch::randn(like.sizes(), torch::kFloat64).to(like.scalar_type());
  };
  ((out.o * direction(out.o)).sum() + (out.state * direction(out.state)).sum()).backward();
  return {out.o.detach(),      out.state.detach(), in.q.grad(),    in.k.grad(),
          in.log_decay.grad(), in.v.grad(),        in.start.grad()};
}

Tensor matrix(const plain::Weights& w, const std::string& name, const Tensor& x) {
  const auto y = w.at(name + ".weight").mv(x);
  return w.count(name + ".bias") ? y + w.at(name + ".bias") : y;
}

Tensor norm(const plain::Weights& w, const std::string& name, const Tensor& x) {
  return torch::layer_norm(x, {x.size(0)}, w.at(name + ".weight"),
                           w.count(name + ".bias") ? w.at(name + ".bias") : Tensor(), 1e-5);
}

plain::Output plain_gla(const nn::ModelOptions& o, const plain::Weights& w,
                        const properties::Ids& ids) {
  const auto d = o.shape.d_model, heads = o.shape.heads, width = d / heads, half = width / 2;
  std::vector<std::vector<Tensor>> states(
      static_cast<std::size_t>(o.shape.layers),
      std::vector<Tensor>(static_cast<std::size_t>(heads),
                          torch::zeros({half, width}, torch::kFloat64)));
  std::vector<Tensor> f, g;
  for (const auto id : ids) {
    auto x = plain::word_vector(o, w, "gla.wte.", id) * std::sqrt(double(d));
    Tensor fed;
    for (std::int64_t layer = 0; layer < o.shape.layers; ++layer) {
      const auto name = "gla.h." + std::to_string(layer) + ".";
      const auto in = norm(w, name + "ln_1", x);
      const auto all = matrix(w, name + "mixer.c_in", in);
      const auto q = all.narrow(0, 0, d / 2), k = all.narrow(0, d / 2, d / 2),
                 v = all.narrow(0, d, d), r = all.narrow(0, 2 * d, d);
      const auto gate = matrix(w, name + "mixer.gate_up", matrix(w, name + "mixer.gate_down", in));
      const auto decay = torch::sigmoid(gate).pow(1.0 / 16);
      std::vector<Tensor> parts;
      for (std::int64_t head = 0; head < heads; ++head) {
        auto& s = states[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)];
        s = torch::diag(decay.narrow(0, head * half, half)).matmul(s) +
            torch::outer(k.narrow(0, head * half, half), v.narrow(0, head * width, width));
        const auto out = s.t().matmul(q.narrow(0, head * half, half)) / std::sqrt(double(half));
        parts.push_back(norm(w, name + "mixer.norm", out));
      }
      x = x + matrix(w, name + "mixer.c_proj", torch::cat(parts) * r * torch::sigmoid(r));
      fed = norm(w, name + "ln_2", x);
      x = x +
          matrix(w, name + "mlp.c_proj", torch::gelu(matrix(w, name + "mlp.c_fc", fed), "tanh"));
    }
    f.push_back(norm(w, "gla.ln_f", x));
    g.push_back(fed);
  }
  return {torch::stack(f), torch::stack(g)};
}

}  // namespace

DOCTEST_TEST_CASE("gla's fused recurrence equals the plain loop, values and gradients") {
  for (const auto type : {torch::kFloat64, torch::kFloat32})
    for (const auto& [steps, d_key, d_value] :
         {std::tuple{1, 1, 1}, {9, 3, 5}, {40, 8, 16}, {300, 4, 8}}) {
      const auto got = results(nn::gla_scan, type, steps, d_key, d_value);
      const auto want = results(nn::gla_scan_plain, type, steps, d_key, d_value);
      for (std::size_t i = 0; i < got.size(); ++i) {
        DOCTEST_CAPTURE(steps);
        DOCTEST_CAPTURE(i);
        DOCTEST_CHECK(gap(got[i], want[i]) < (type == torch::kFloat64 ? 1e-10 : 3e-5));
      }
    }
}

DOCTEST_TEST_CASE("gla equals its formulas in values and gradients, over calls of any length") {
  auto options = properties::small_options("gla");
  const auto model = strong_model(options);
  plain::Weights weights;
  for (const auto& [name, weight] : model->named_weights()) weights[name] = weight;
  const auto ids = random_ids(12, 1);
  nn::State state;
  std::vector<Tensor> f, g;
  std::size_t at = 0;
  for (const std::size_t n : {5, 1, 6}) {
    const properties::Ids part(ids.begin() + static_cast<std::ptrdiff_t>(at),
                               ids.begin() + static_cast<std::ptrdiff_t>(at + n));
    const auto hidden = model->architecture->forward(batch_of({part}, at == 0), &state);
    f.push_back(hidden.f[0]);
    g.push_back(hidden.g[0]);
    at += n;
  }
  const auto want = plain_gla(options, weights, ids);
  properties::check_same(*model, {torch::cat(f), torch::cat(g)}, {want.f, want.g}, 1e-10);
}

DOCTEST_TEST_CASE("gla carries a State of constant size and refuses heads that do not fit") {
  auto options = properties::small_options("gla");
  const auto model = strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  const auto bytes = state.bytes();
  DOCTEST_CHECK(bytes == 2 * (2 * 2 * 4) * 8);
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == bytes);
  options.shape.heads = 8;
  DOCTEST_CHECK_THROWS_WITH_AS(nn::Model(options, 13), "heads: twice 8 does not divide d-model 8",
                               core::Error);
}
