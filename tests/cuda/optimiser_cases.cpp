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
  nn::AdamSpan span{w.data(),        m.data(), v.data(), g.data(), scale.data(),
                    std::int64_t(n), 0.999F,   0.9F,     0.98F,    0.1F,
                    0.02F,           0.01F,    1.5F,     1e-3F};
  nn::adam_cpu(span, 0, std::int64_t(n));
  span.w = w_.data(), span.m = m_.data(), span.v = v_.data(), span.g = g_.data();
  span.scale = scale_.data();
  require(nn::adam_cuda(span, nullptr) == 0, "adam");
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
  nn::NagSpan span{w.data(), u.data(), g.data(), scale.data(), std::int64_t(n),
                   0.999F,   0.8F,     0.02F,    0.9F,         0.01F};
  nn::nag_cpu(span, 0, std::int64_t(n));
  span.w = w_.data(), span.u = u_.data(), span.g = g_.data(), span.scale = scale_.data();
  require(nn::nag_cuda(span, nullptr) == 0, "nag");
  Worst worst;
  worst(gap(w_.back(), w) / kClose);
  worst(gap(u_.back(), u) / kClose);
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> optimiser_cases() {
  return {{"Adam on 1,001 weights", [] { return adam_gap(1001); }},
          {"Adam on one weight", [] { return adam_gap(1); }},
          {"Adam on none", [] { return adam_gap(0); }},
          {"NAG on 1,001 weights", [] { return nag_gap(1001); }}};
}

}  // namespace cuda_test
