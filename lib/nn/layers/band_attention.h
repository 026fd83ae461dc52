#pragma once
// Attention of long rows to what is near, without a mask of the rows' length squared.

#include "nn/layers/attention.h"

namespace nn {

/// Query i sees keys i - window + 1 to i: q, k, v (B, heads, T, width) -> (B, heads, T, width). The
/// same as attend() with a mask that says so; time and memory grow with T window, in blocks of
/// `window` queries that each read two blocks of keys.
torch::Tensor attend_band(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          std::int64_t window, double dropout, const Scores& scores = {});

}  // namespace nn
