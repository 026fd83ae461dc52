#pragma once
// Sliding-window attention over long rows, without a mask quadratic in their length.

#include "nn/layers/attention.h"

namespace nn {

/// Computes attention in which query i sees keys i - window + 1 to i: q, k, v (B, heads, T, width)
/// -> (B, heads, T, width). Equivalent to attend() with such a mask. Time and memory are
/// proportional to T window: blocks of `window` queries each read two blocks of keys.
torch::Tensor attend_band(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          std::int64_t window, double dropout, const Scores& scores = {});

}  // namespace nn
