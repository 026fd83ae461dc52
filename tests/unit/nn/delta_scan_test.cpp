// The gated delta rule: chunks on the CPU, in torch's operators and in emulated device kernels,
// compared with the loop over steps.

#include "nn/ops/gla_scan.h"

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

using DeltaScan = nn::DeltaOutput (*)(const nn::DeltaInput&);

struct ScanSizes {
  std::int64_t steps, d_key, d_value;
};

Tensor direction(const Tensor& like) {
  return torch::randn(like.sizes(), torch::kFloat64).to(like.scalar_type());
}

// Random steps: keys of length 1, decays of at least e^-strength.
nn::DeltaInput steps_of(const ScanSizes& sizes, double strength, torch::ScalarType type) {
  torch::manual_seed(3);
  const auto random = [&](torch::IntArrayRef shape) {
    return torch::randn(shape, torch::kFloat64);
  };
  const auto keys = random({2, sizes.steps, 3, sizes.d_key});
  nn::DeltaInput in{random({2, sizes.steps, 3, sizes.d_key}),
      keys / keys.norm(2, {-1}, /*keepdim=*/true), random({2, sizes.steps, 3, sizes.d_value}),
      torch::sigmoid(random({2, sizes.steps, 3})),
      -strength * torch::rand({2, sizes.steps, 3}, torch::kFloat64),
      random({2, 3, sizes.d_key, sizes.d_value})};
  for (auto* const x : {&in.q, &in.k, &in.v, &in.beta, &in.log_decay, &in.start})
    *x = x->to(type).set_requires_grad(true);
  return in;
}

// Returns o, the last state, then the gradients of all inputs.
std::vector<Tensor> results(DeltaScan scan, const nn::DeltaInput& in) {
  const auto out = scan(in);
  torch::manual_seed(4);
  std::vector<Tensor> all = {out.o.detach(), out.state.detach()};
  const auto loss = (out.o * direction(out.o)).sum() + (out.state * direction(out.state)).sum();
  const auto gradients =
      torch::autograd::grad({loss}, {in.q, in.k, in.v, in.beta, in.log_decay, in.start});
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

// Computes the recurrence step by step with torch operators: the reference.
nn::DeltaOutput delta_scan_plain(const nn::DeltaInput& in) {
  auto state = in.start;
  std::vector<Tensor> out;
  for (std::int64_t t = 0; t < in.q.size(1); ++t) {
    const auto k = in.k.select(1, t).unsqueeze(3);  // (B, heads, d_key, 1)
    const auto per_head = [&](const Tensor& x) { return x.select(1, t).unsqueeze(2).unsqueeze(3); };
    const auto faded = per_head(in.log_decay).exp() * state;
    const auto missing = in.v.select(1, t).unsqueeze(2) - (k * faded).sum(2, /*keepdim=*/true);
    state = faded + per_head(in.beta) * k * missing;
    out.push_back((in.q.select(1, t).unsqueeze(3) * state).sum(2));
  }
  return {out.empty() ? torch::zeros_like(in.v) : torch::stack(out, 1), state};
}

void check_scan(DeltaScan scan, const nn::DeltaInput& in, double close) {
  const auto got = results(scan, in), want = results(delta_scan_plain, in);
  for (std::size_t i = 0; i < got.size(); ++i) {
    DOCTEST_CAPTURE(i);
    DOCTEST_CHECK(got[i].sizes() == want[i].sizes());
    DOCTEST_CHECK(gap(got[i], want[i]) < close);
  }
}

const std::vector<ScanSizes> kScanSizes = {
    {1, 1, 1}, {9, 3, 5}, {31, 4, 8}, {32, 8, 16}, {33, 5, 7}, {150, 4, 8}, {64, 16, 32}};

}  // namespace

DOCTEST_TEST_CASE("the delta rule in chunks is the loop over steps, values and gradients") {
  for (const auto& sizes : kScanSizes)
    for (const double strength : {0.0, 0.1, 3.0, 400.0}) {
      DOCTEST_CAPTURE(sizes.steps);
      DOCTEST_CAPTURE(strength);
      const auto in = steps_of(sizes, strength, torch::kFloat64);
      check_scan(nn::delta_scan, in, 1e-10);
      check_scan(nn::delta_scan_chunks, in, 1e-10);
      const nn::AsDevice device;
      check_scan(nn::delta_scan, in, 1e-10);
    }
}

DOCTEST_TEST_CASE("the delta rule in float32") {
  for (const auto& sizes : kScanSizes)
    for (const double strength : {0.0, 0.1, 400.0}) {
      DOCTEST_CAPTURE(sizes.steps);
      DOCTEST_CAPTURE(strength);
      const auto in = steps_of(sizes, strength, torch::kFloat32);
      check_scan(nn::delta_scan, in, 2e-4);
      check_scan(nn::delta_scan_chunks, in, 2e-4);
    }
}

DOCTEST_TEST_CASE("the delta rule by a device's kernels: heads and rows among others, no steps") {
  const nn::CudaKernels kernels;
  const nn::AsDevice device(&kernels);
  for (const auto& sizes : std::vector<ScanSizes>{{1, 1, 1}, {33, 5, 7}, {70, 4, 34}}) {
    DOCTEST_CAPTURE(sizes.steps);
    auto in = steps_of(sizes, 0.5, torch::kFloat32);
    check_scan(nn::delta_scan, in, 2e-4);
    // In a layer's memory layout: heads before steps.
    in.v = in.v.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_();
    check_scan(nn::delta_scan, in, 2e-4);
  }
  const auto in = steps_of({0, 3, 2}, 0.5, torch::kFloat32);
  DOCTEST_CHECK(torch::equal(nn::delta_scan(in).state, in.start));
}

DOCTEST_TEST_CASE("one key again and again: the matrix has its last value, in float32 too") {
  const auto check = [](DeltaScan scan) {
    const std::int64_t steps = 200;
    const auto v = torch::randn({1, steps, 1, 4});
    const auto k = torch::full({1, steps, 1, 4}, 0.5), one = torch::ones({1, steps, 1});
    const auto out = scan({k, k, v, one, torch::zeros_like(one), torch::randn({1, 1, 4, 4})});
    DOCTEST_CHECK(gap(out.o, v) < 1e-4);
  };
  for (const auto scan : {nn::delta_scan, nn::delta_scan_chunks, delta_scan_plain}) check(scan);
  const nn::CudaKernels kernels;
  const nn::AsDevice device(&kernels);
  check(nn::delta_scan);
}

DOCTEST_TEST_CASE("a step of the delta rule is one of gradient descent on what its key gives") {
  auto in = steps_of({1, 4, 6}, 0.5, torch::kFloat64);
  const auto faded =
      (in.log_decay.exp().view({2, 3, 1, 1}) * in.start).detach().set_requires_grad(true);
  const auto given = (faded * in.k.view({2, 3, 4, 1})).sum(2);
  const auto error = 0.5 * (given - in.v.view({2, 3, 6})).square().sum();
  const auto gradient = torch::autograd::grad({error}, {faded})[0];
  const auto want = faded - in.beta.view({2, 3, 1, 1}) * gradient;
  DOCTEST_CHECK(gap(nn::delta_scan(in).state, want) < 1e-12);
}

DOCTEST_TEST_CASE("steps without strength and decay change no state, and states go on") {
  for (const auto scan : {nn::delta_scan, nn::delta_scan_chunks}) {
    const torch::NoGradGuard no_grad;
    const auto in = steps_of({100, 4, 6}, 0.5, torch::kFloat64);
    const auto part = [&](std::int64_t begin, std::int64_t n, const Tensor& start) {
      const auto cut = [&](const Tensor& x) { return x.narrow(1, begin, n); };
      return scan({cut(in.q), cut(in.k), cut(in.v), cut(in.beta), cut(in.log_decay), start});
    };
    const auto whole = scan(in), first = part(0, 41, in.start), rest = part(41, 59, first.state);
    DOCTEST_CHECK(gap(torch::cat({first.o, rest.o}, 1), whole.o) < 1e-12);
    DOCTEST_CHECK(gap(rest.state, whole.state) < 1e-12);
    const auto nothing = torch::zeros({2, 100, 3}, torch::kFloat64);
    const auto idle = scan({in.q, in.k, in.v, nothing, nothing, in.start});
    DOCTEST_CHECK(torch::equal(idle.state, in.start));
    DOCTEST_CHECK(torch::equal(part(0, 0, in.start).state, in.start));
  }
}
