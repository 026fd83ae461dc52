#include "kernel_cases.h"
#include "nn/kernels/leaky_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

struct Shape {
  std::int64_t rows, steps, heads, width;
};

double leaky_gap(const Shape& size, bool from, bool want_keys, bool want_sums) {
  const auto [rows, steps, heads, width] = size;
  const std::int64_t d = heads * width, x_step = d + 3, x_row = steps * x_step + 5;
  const auto n = std::size_t(rows * steps * d), norms_n = std::size_t(rows * steps * heads),
             ends_n = std::size_t(rows * d), parts_n = std::size_t(rows * heads);
  const auto x = random_floats(std::size_t(rows * x_row), 1),
             decay = random_floats(std::size_t(heads), 2, 0.5F, 0.99F),
             scale = random_floats(std::size_t(heads), 3, 0.5F, 2),
             before = random_floats(ends_n, 4), d_keys = random_floats(n, 5),
             d_sums = random_floats(n, 6);
  const auto inputs = [&](const float* x_at, const float* decay_at, const float* scale_at,
                          const float* before_at) {
    return nn::LeakyInputs<float>{size.rows, size.steps, size.heads, size.width, x_at, x_row,
        x_step, decay_at, scale_at, from ? before_at : nullptr};
  };

  Floats keys(n), norms(norms_n), dx(n), d_before(ends_n), d_decay(parts_n), d_scale(parts_n);
  const auto in = inputs(x.data(), decay.data(), scale.data(), before.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    nn::leaky_keys_forward_cpu(in, keys.data(), norms.data(), row);
    nn::leaky_keys_backward_cpu(in, keys.data(), norms.data(),
        {want_keys ? d_keys.data() : nullptr, want_sums ? d_sums.data() : nullptr, dx.data(),
            from ? d_before.data() : nullptr, d_decay.data(), d_scale.data(), nullptr},
        row);
  }

  OnDevice<float> x_(x), decay_(decay), scale_(scale), before_(before), d_keys_(d_keys),
      d_sums_(d_sums);
  auto keys_ = OnDevice<float>::unwritten(n), norms_ = OnDevice<float>::unwritten(norms_n),
       dx_ = OnDevice<float>::unwritten(n), d_before_ = OnDevice<float>::unwritten(ends_n),
       d_decay_ = OnDevice<float>::unwritten(parts_n),
       d_scale_ = OnDevice<float>::unwritten(parts_n), work_ = OnDevice<float>::unwritten(norms_n);
  const auto on = inputs(x_.data(), decay_.data(), scale_.data(), before_.data());
  require(nn::leaky_keys_forward_cuda(on, keys_.data(), norms_.data(), nullptr) == 0, "forward");
  require(
      nn::leaky_keys_backward_cuda(on, keys_.data(), norms_.data(),
          {want_keys ? d_keys_.data() : nullptr, want_sums ? d_sums_.data() : nullptr, dx_.data(),
              from ? d_before_.data() : nullptr, d_decay_.data(), d_scale_.data(), work_.data()},
          nullptr) == 0,
      "backward");
  constexpr double kClose = 2e-5;
  Worst worst;
  worst(gap(keys_.back(), keys) / kClose);
  worst(gap(norms_.back(), norms) / kClose);
  worst(gap(dx_.back(), dx) / kClose);
  if (from) worst(gap(d_before_.back(), d_before) / kClose);
  worst(gap(d_decay_.back(), d_decay) / (10 * kClose));
  worst(gap(d_scale_.back(), d_scale) / (10 * kClose));
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> leaky_cases() {
  std::vector<KernelCase> cases;
  for (const bool from : {false, true}) {
    const std::string start = from ? " after others" : "";
    cases.push_back({"leaky 3 x 37 x 4 x 20" + start, [from] {
                       return leaky_gap({3, 37, 4, 20}, from, true, true);
                     }});
    cases.push_back({"leaky, one of each" + start, [from] {
                       return leaky_gap({1, 1, 1, 1}, from, true, false);
                     }});
    cases.push_back({"leaky, sums alone" + start, [from] {
                       return leaky_gap({2, 150, 3, 150}, from, false, true);
                     }});
  }
  return cases;
}

}  // namespace cuda_test
