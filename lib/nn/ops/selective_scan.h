#pragma once
// Selective scan of Mamba (Gu and Dao 2023, arXiv 2312.00752, section 3), with a state h of n
// numbers for each channel:
//
//   h_t = exp(dt_t A) h_{t-1} + dt_t x_t B_t        y_t = h_t C_t

#include "nn/base/torch.h"

namespace nn {

struct SelectiveOutput {
  torch::Tensor y;      ///< (B, T, width)
  torch::Tensor state;  ///< (B, width, n): h after the last step
};

/// Computes the scan: x and dt (B, T, width), a (width, n), b and c (B, T, n), start (B, width, n):
/// h before the first step. Differentiable in all. A step with dt = 0 has no effect. Computes in
/// float32, or in float64 if x is. On the CPU a thread makes one pass over the steps for a block of
/// channels of a row; backward computes the states again from those of every 16th step. Other
/// devices use gla_scan.
SelectiveOutput selective_scan(const torch::Tensor& x, const torch::Tensor& dt,
    const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& c,
    const torch::Tensor& start);

}  // namespace nn
