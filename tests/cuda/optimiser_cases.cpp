#include <deque>

#include "kernel_cases.h"
#include "nn/kernels/optimiser_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

constexpr double kClose = 2e-6;

double adam_gap(std::size_t n) {
  Floats w = random_floats(n, 1), m = random_floats(n, 2), v = random_floats(n, 3, 0, 1),
         scale = {0.25F};
  const auto g = random_floats(n, 4);
  OnDevice<float> w_(w), m_(m), v_(v), g_(g), scale_(scale);
  nn::AdamSpan span{w.data(), m.data(), v.data(), g.data(), scale.data(), std::int64_t(n), 0.999F,
      0.9F, 0.98F, 0.1F, 0.02F, 0.01F, 1.5F, 1e-3F};
  nn::adam_cpu(span, 0, std::int64_t(n));
  span.w = w_.data(), span.m = m_.data(), span.v = v_.data(), span.g = g_.data();
  span.scale = scale_.data();
  require(nn::adam_cuda(&span, 1, nullptr) == 0, "adam");
  Worst worst;
  worst(gap(w_.back(), w) / kClose);
  worst(gap(m_.back(), m) / kClose);
  worst(gap(v_.back(), v) / kClose);
  return worst.gap;
}

double nag_gap(std::size_t n) {
  Floats w = random_floats(n, 1), u = random_floats(n, 2), scale = {0.25F};
  const auto g = random_floats(n, 4);
  OnDevice<float> w_(w), u_(u), g_(g), scale_(scale);
  nn::NagSpan span{w.data(), u.data(), g.data(), scale.data(), std::int64_t(n), 0.999F, 0.8F, 0.02F,
      0.9F, 0.01F};
  nn::nag_cpu(span, 0, std::int64_t(n));
  span.w = w_.data(), span.u = u_.data(), span.g = g_.data(), span.scale = scale_.data();
  require(nn::nag_cuda(&span, 1, nullptr) == 0, "nag");
  Worst worst;
  worst(gap(w_.back(), w) / kClose);
  worst(gap(u_.back(), u) / kClose);
  return worst.gap;
}

// Weights of many sizes, none among them, more than a launch takes.
double many_gap() {
  constexpr std::size_t kWeights = 101;
  std::vector<Floats> w, u;
  std::deque<OnDevice<float>> w_, u_, g_;
  std::vector<nn::NagSpan> spans;
  Floats scale = {0.25F};
  OnDevice<float> scale_(scale);
  for (std::size_t i = 0; i < kWeights; ++i) {
    const std::size_t n = i * i % 700;
    w.push_back(random_floats(n, 3 * i)), u.push_back(random_floats(n, 3 * i + 1));
    const auto g = random_floats(n, 3 * i + 2);
    w_.emplace_back(w[i]), u_.emplace_back(u[i]), g_.emplace_back(g);
    nn::NagSpan span{w[i].data(), u[i].data(), g.data(), scale.data(), std::int64_t(n), 0.999F,
        0.8F, 0.02F, 0.9F, 0.01F};
    nn::nag_cpu(span, 0, std::int64_t(n));
    span.w = w_[i].data(), span.u = u_[i].data(), span.g = g_[i].data();
    span.scale = scale_.data();
    spans.push_back(span);
  }
  require(nn::nag_cuda(spans.data(), std::int64_t(kWeights), nullptr) == 0, "nag");
  Worst worst;
  for (std::size_t i = 0; i < kWeights; ++i) {
    worst(gap(w_[i].back(), w[i]) / kClose);
    worst(gap(u_[i].back(), u[i]) / kClose);
  }
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> optimiser_cases() {
  return {{"Adam on 1,001 weights", [] { return adam_gap(1001); }},
      {"Adam on one weight", [] { return adam_gap(1); }},
      {"Adam on none", [] { return adam_gap(0); }},
      {"NAG on 1,001 weights", [] { return nag_gap(1001); }},
      {"NAG on 101 weights of many sizes", [] { return many_gap(); }}};
}

}  // namespace cuda_test
