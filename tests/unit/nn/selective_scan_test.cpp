// The selective scan: the CPU kernel and the path of devices, compared with a loop over steps.

#include "nn/ops/selective_scan.h"

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

// x, dt, a, b, c and the first state.
std::vector<Tensor> scan_inputs(
    std::int64_t rows, std::int64_t steps, std::int64_t width, std::int64_t n) {
  torch::manual_seed(5);
  const auto random = [](torch::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); };
  return {random({rows, steps, width}), random({rows, steps, width}).exp() / 4,
      -random({width, n}).exp(), random({rows, steps, n}), random({rows, steps, n}),
      random({rows, width, n})};
}

nn::SelectiveOutput plain_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
    const Tensor& c, const Tensor& start) {
  auto h = start;
  std::vector<Tensor> y;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const auto rate = dt.select(1, t).unsqueeze(2);
    h = (rate * a).exp() * h + rate * x.select(1, t).unsqueeze(2) * b.select(1, t).unsqueeze(1);
    y.push_back((h * c.select(1, t).unsqueeze(1)).sum(2));
  }
  return {torch::stack(y, 1), h};
}

// y, the last state and the gradients of all inputs, through one of the outputs or both.
template <class Scan>
std::vector<Tensor> scan_results(
    const Scan& scan, const std::vector<Tensor>& values, torch::ScalarType type, int through) {
  std::vector<Tensor> in;
  for (const auto& value : values) in.push_back(value.to(type).clone().set_requires_grad(true));
  const auto out = scan(in[0], in[1], in[2], in[3], in[4], in[5]);
  torch::manual_seed(6);
  const auto along = [](const Tensor& of) {
    return (of * torch::randn(of.sizes(), torch::kFloat64).to(of.dtype())).sum();
  };
  const auto of_y = along(out.y), of_state = along(out.state);
  auto all = torch::autograd::grad({through == 0      ? of_y
                                       : through == 1 ? of_state
                                                      : of_y + of_state},
      in, {}, {}, false,
      /*allow_unused=*/true);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].defined()) all[i] = torch::zeros_like(in[i]);
  all.push_back(out.y.detach());
  all.push_back(out.state.detach());
  return all;
}

void check_scan(torch::ScalarType type, double close) {
  for (const auto& [rows, steps, width, n] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
           {2, 15, 3, 5}, {3, 16, 64, 2}, {2, 17, 65, 16}, {2, 50, 130, 3}, {1, 200, 20, 4}})
    for (const int through : {0, 1, 2}) {
      const auto values = scan_inputs(rows, steps, width, n);
      const auto got = scan_results(nn::selective_scan, values, type, through);
      const auto want = scan_results(plain_scan, values, torch::kFloat64, through);
      for (std::size_t i = 0; i < got.size(); ++i) {
        DOCTEST_CAPTURE(steps);
        DOCTEST_CAPTURE(width);
        DOCTEST_CAPTURE(through);
        DOCTEST_CAPTURE(i);
        DOCTEST_CHECK(got[i].dtype() == type);
        DOCTEST_CHECK(got[i].sizes() == want[i].sizes());
        DOCTEST_CHECK(gap(got[i].to(torch::kFloat64), want[i]) < close);
      }
    }
}

}  // namespace

DOCTEST_TEST_CASE("a selective scan equals the loop over steps, values and gradients") {
  check_scan(torch::kFloat64, 1e-10);
  check_scan(torch::kFloat32, 2e-4);
  const nn::AsDevice device;
  check_scan(torch::kFloat64, 1e-10);
}

DOCTEST_TEST_CASE("a selective scan in pieces carries its state; steps without dt change nothing") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const double close = type == torch::kFloat64 ? 1e-12 : 1e-5;
    auto in = scan_inputs(2, 37, 70, 6);
    for (auto& value : in) value = value.to(type);
    in[1].narrow(1, 30, 7).zero_();
    const auto whole = nn::selective_scan(in[0], in[1], in[2], in[3], in[4], in[5]);
    for (const std::int64_t piece : {1, 5, 16, 20}) {
      DOCTEST_CAPTURE(piece);
      auto state = in[5];
      std::vector<Tensor> y;
      for (std::int64_t t = 0; t < 37; t += piece) {
        const auto part = [&](std::size_t i) {
          return in[i].narrow(1, t, std::min<std::int64_t>(piece, 37 - t));
        };
        const auto out = nn::selective_scan(part(0), part(1), in[2], part(3), part(4), state);
        y.push_back(out.y);
        state = out.state;
        if (t + piece == 30) DOCTEST_CHECK(torch::equal(state, whole.state));
      }
      DOCTEST_CHECK(gap(torch::cat(y, 1), whole.y) < close);
      DOCTEST_CHECK(gap(state, whole.state) < close);
    }
  }
}
