#include "nn/layers/short_convolution.h"

#include <cmath>

#include "nn/base/upload.h"
#include "nn/layers/layers.h"
#include "nn/ops/swish_convolution.h"

namespace nn {

ShortConvolution::ShortConvolution(std::int64_t width, std::int64_t taps, std::int64_t apart,
                                   bool first_zero)
    : weight_(register_parameter("weight", blank({width, taps}))),
      apart_(apart),
      first_zero_(first_zero) {}

void ShortConvolution::first_values() {
  if (first_zero_) {
    weight_.zero_();
    return;
  }
  const auto bound = 1 / std::sqrt(static_cast<double>(weight_.size(1)));
  weight_.uniform_(-bound, bound);
}

torch::Tensor ShortConvolution::forward(const torch::Tensor& x, torch::Tensor& past,
                                        const torch::Tensor& count) const {
  const auto rows = x.size(0), steps = x.size(1), width = x.size(2),
             kept = (weight_.size(1) - 1) * apart_;
  if (!past.defined()) past = torch::zeros({rows, kept, width}, x.options().requires_grad(false));
  // A dilated kernel is a dense kernel with zeros between its taps.
  const auto weight = apart_ == 1 ? weight_
                                  : torch::constant_pad_nd(weight_.unsqueeze(2), {0, apart_ - 1})
                                        .flatten(1)
                                        .narrow(1, 0, kept + 1);
  const auto y = swish_convolution(x, past, weight);
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
