#include "nn/layers/short_convolution.h"

#include <cmath>

#include "nn/base/upload.h"
#include "nn/layers/layers.h"

namespace nn {

ShortConvolution::ShortConvolution(std::int64_t width, std::int64_t taps)
    : weight_(register_parameter("weight", blank({width, taps}))) {}

void ShortConvolution::first_values() {
  const auto bound = 1 / std::sqrt(static_cast<double>(weight_.size(1)));
  weight_.uniform_(-bound, bound);
}

torch::Tensor ShortConvolution::forward(const torch::Tensor& x, torch::Tensor& past,
                                        const torch::Tensor& count) const {
  const auto rows = x.size(0), steps = x.size(1), width = x.size(2), taps = weight_.size(1);
  if (!past.defined())
    past = torch::zeros({rows, taps - 1, width}, x.options().requires_grad(false));
  const auto all = torch::cat({past.to(x.scalar_type()), x}, 1);  // (B, taps - 1 + T, width)
  if (count.defined()) {
    const auto at = upload(count.unsqueeze(1) + torch::arange(taps - 1), x.device());
    past = all.gather(1, at.unsqueeze(2).expand({rows, taps - 1, width}));
  } else {
    past = all.narrow(1, steps, taps - 1).clone();
  }
  auto y = all.narrow(1, 0, steps) * weight_.select(1, 0);
  for (std::int64_t j = 1; j < taps; ++j) y = y + all.narrow(1, j, steps) * weight_.select(1, j);
  return y;
}

}  // namespace nn
