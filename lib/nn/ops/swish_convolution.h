#pragma once
// A causal convolution over few steps, each channel by itself, and its swish:
//
//   y_t = z_t sigmoid(z_t),  z_t = sum over j < taps of weight_j x_{t - taps + 1 + j}

#include "nn/base/torch.h"

namespace nn {

/// x (B, T, width), past (B, taps - 1, width): the steps before, weight (width, taps) -> (B, T,
/// width). Differentiable in all of them. On the CPU one loop over steps that keeps its inputs
/// alone; elsewhere torch's operators.
torch::Tensor swish_convolution(const torch::Tensor& x, const torch::Tensor& past,
                                const torch::Tensor& weight);

}  // namespace nn
