#pragma once
// Causal depthwise convolution over few steps, followed by swish (or, if asked, y = z):
//
//   y_t = z_t sigmoid(z_t),  z_t = bias + sum over j < taps of weight_j x_{t - taps + 1 + j}

#include "nn/base/torch.h"

namespace nn {

/// Computes (B, T, width) from x (B, T, width), past (B, taps - 1, width), the previous steps, and
/// weight (width, taps); bias (width), or undefined: 0. Differentiable in all inputs. On the CPU it
/// is a loop over steps that stores only its inputs; other devices use torch operators.
torch::Tensor swish_convolution(const torch::Tensor& x, const torch::Tensor& past,
    const torch::Tensor& weight, const torch::Tensor& bias = {}, bool swish = true);

}  // namespace nn
