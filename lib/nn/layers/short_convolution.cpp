#include "nn/layers/short_convolution.h"

#include <cmath>

#include "nn/base/upload.h"
#include "nn/layers/layers.h"
#include "nn/ops/swish_convolution.h"

namespace nn {

ShortConvolution::ShortConvolution(std::int64_t width, std::int64_t taps)
    : weight_(register_parameter("weight", blank({width, taps}))) {}

void ShortConvolution::first_values() {
  const auto bound = 1 / std::sqrt(static_cast<double>(weight_.size(1)));
  weight_.uniform_(-bound, bound);
}

torch::Tensor ShortConvolution::forward(const torch::Tensor& x, torch::Tensor& past,
                                        const torch::Tensor& count) const {
  const auto rows = x.size(0), steps = x.size(1), width = x.size(2), kept = weight_.size(1) - 1;
  if (!past.defined()) past = torch::zeros({rows, kept, width}, x.options().requires_grad(false));
  const auto y = swish_convolution(x, past, weight_);
  const auto all = [&] { return torch::cat({past.to(x.scalar_type()), x}, 1); };
  if (count.defined()) {
    const auto at = upload(count.unsqueeze(1) + torch::arange(kept, count.options()), x.device());
    past = all().gather(1, at.unsqueeze(2).expand({rows, kept, width}));
  } else {
    past = steps < kept ? all().narrow(1, steps, kept).clone()
                        : x.narrow(1, steps - kept, kept).clone();
  }
  return y;
}

}  // namespace nn
