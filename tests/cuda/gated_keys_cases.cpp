#include "kernel_cases.h"
#include "nn/kernels/gated_keys_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

struct Shape {
  std::int64_t rows, steps, heads, width;
};

double gated_gap(const Shape& size, bool fresh, bool want_keys, bool want_sums) {
  const auto [rows, steps, heads, width] = size;
  const std::int64_t d = heads * width, x_step = d + 3, x_row = steps * x_step + 5;
  const auto n = std::size_t(rows * steps * d), numbers_n = std::size_t(rows * steps * heads),
             ends_n = std::size_t(rows * d), levels_n = std::size_t(rows * heads);
  const auto x = random_floats(std::size_t(rows * x_row), 1),
             gate = random_floats(numbers_n, 2, -3, 3), decay = random_floats(numbers_n, 3, -2, 0),
             d_keys = random_floats(n, 4), d_sums = random_floats(n, 5);
  const auto before = fresh ? Floats(ends_n, 0.0F) : random_floats(ends_n, 6),
             levels = fresh ? Floats(levels_n, -1e30F) : random_floats(levels_n, 7);

  Floats keys(n), norms(numbers_n), level(numbers_n), own(numbers_n), kept(numbers_n), dx(n),
      d_gate(numbers_n), d_decay(numbers_n), d_before(ends_n);
  const nn::GatedInputs<float> in{rows, steps, heads, width, x.data(), x_row, x_step, gate.data(),
      decay.data(), before.data(), levels.data()};
  const nn::GatedOutputs<float> out{
      keys.data(), norms.data(), level.data(), own.data(), kept.data()};
  for (std::int64_t row = 0; row < rows; ++row) {
    nn::gated_keys_forward_cpu(in, out, row);
    nn::gated_keys_backward_cpu(in, out,
        {want_keys ? d_keys.data() : nullptr, want_sums ? d_sums.data() : nullptr, dx.data(),
            d_gate.data(), d_decay.data(), d_before.data()},
        row);
  }

  OnDevice<float> x_(x), gate_(gate), decay_(decay), before_(before), levels_(levels),
      d_keys_(d_keys), d_sums_(d_sums);
  const auto unwritten = [](std::size_t count) { return OnDevice<float>::unwritten(count); };
  auto keys_ = unwritten(n), norms_ = unwritten(numbers_n), level_ = unwritten(numbers_n),
       own_ = unwritten(numbers_n), kept_ = unwritten(numbers_n), dx_ = unwritten(n),
       d_gate_ = unwritten(numbers_n), d_decay_ = unwritten(numbers_n),
       d_before_ = unwritten(ends_n);
  const nn::GatedInputs<float> on{rows, steps, heads, width, x_.data(), x_row, x_step, gate_.data(),
      decay_.data(), before_.data(), levels_.data()};
  const nn::GatedOutputs<float> made{
      keys_.data(), norms_.data(), level_.data(), own_.data(), kept_.data()};
  require(nn::gated_keys_forward_cuda(on, made, nullptr) == 0, "forward");
  require(nn::gated_keys_backward_cuda(on, made,
              {want_keys ? d_keys_.data() : nullptr, want_sums ? d_sums_.data() : nullptr,
                  dx_.data(), d_gate_.data(), d_decay_.data(), d_before_.data()},
              nullptr) == 0,
      "backward");
  constexpr double kClose = 2e-5;
  Worst worst;
  worst(gap(keys_.back(), keys) / kClose);
  worst(gap(norms_.back(), norms) / kClose);
  worst(gap(level_.back(), level) / kClose);
  worst(gap(own_.back(), own) / kClose);
  worst(gap(kept_.back(), kept) / kClose);
  worst(gap(dx_.back(), dx) / kClose);
  worst(gap(d_gate_.back(), d_gate) / (10 * kClose));
  worst(gap(d_decay_.back(), d_decay) / (10 * kClose));
  worst(gap(d_before_.back(), d_before) / kClose);
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> gated_keys_cases() {
  std::vector<KernelCase> cases;
  for (const bool fresh : {false, true}) {
    const std::string start = fresh ? "" : " after others";
    cases.push_back({"gated keys 3 x 37 x 4 x 20" + start, [fresh] {
                       return gated_gap({3, 37, 4, 20}, fresh, true, true);
                     }});
    cases.push_back({"gated keys, one of each" + start, [fresh] {
                       return gated_gap({1, 1, 1, 1}, fresh, true, false);
                     }});
    cases.push_back({"gated keys, sums alone" + start, [fresh] {
                       return gated_gap({2, 150, 3, 150}, fresh, false, true);
                     }});
  }
  return cases;
}

}  // namespace cuda_test
