#pragma once
// Recurrence of SRU++ (Lei 2021, eq. 1-3), elementwise in d channels:
//
//   f_t = sigmoid(u1_t + w_f c_{t-1} + b_f)        r_t = sigmoid(u2_t + w_r c_{t-1} + b_r)
//   c_t = f_t c_{t-1} + (1 - f_t) u0_t             h_t = x_t + m r_t (c_t - x_t)
//
// m is a dropout mask common to all steps.

#include "nn/base/torch.h"

namespace nn {

/// Weights of the recurrence, each (d).
struct SruWeights {
  torch::Tensor forget, highway;            ///< w_f, w_r
  torch::Tensor forget_bias, highway_bias;  ///< b_f, b_r
};

struct SruOutput {
  torch::Tensor h;      ///< (B, T, d)
  torch::Tensor cells;  ///< (B, d): the cell after each row's last step
};

/// Computes the recurrence: gates (B, T, 3 d): u0, u1, u2; x (B, T, d); start (B, d): c before the
/// first step; dropout (B, d) or undefined. Row b runs for steps[b] steps, (B) int64, undefined: T;
/// h beyond these is finite and has no gradient. Differentiable in all inputs but dropout. On the
/// CPU it makes one pass over the steps, with its own backward pass, and assigns a row and a range
/// of channels to each thread; in float32 on a GPU a kernel does this; otherwise sru_scan_plain.
SruOutput sru_scan(const torch::Tensor& gates, const torch::Tensor& x, const torch::Tensor& start,
    const SruWeights& weights, const torch::Tensor& dropout, const torch::Tensor& steps);

/// Computes the recurrence step by step with torch operators: the reference.
SruOutput sru_scan_plain(const torch::Tensor& gates, const torch::Tensor& x,
    const torch::Tensor& start, const SruWeights& weights, const torch::Tensor& dropout,
    const torch::Tensor& steps);

}  // namespace nn
