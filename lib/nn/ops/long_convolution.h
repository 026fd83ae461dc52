#pragma once
// Causal convolution of each channel with a filter as long as the sequence:
//
//   y_t = sum over j >= 0 of filter_j x_{t-j}

#include "nn/base/torch.h"

namespace nn {

/// Returns y of the last `steps` steps of x (B, T, d) alone: (B, steps, d), from filter (d, n).
/// What lies before x or beyond the filter counts as 0. More than 32 steps take Fourier transforms,
/// whose rounding lets later steps change earlier ones by as much; fewer take one exactly causal
/// product. At least float32, also under autocast. Differentiable.
torch::Tensor long_convolution(
    const torch::Tensor& x, const torch::Tensor& filter, std::int64_t steps);

}  // namespace nn
