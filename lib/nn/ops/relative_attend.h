#pragma once
// Attention with relative positions in blocks of queries, without (T, S) scores in memory.

#include <cstdint>

#include "nn/base/torch.h"

namespace nn {

/// Computes dropout(softmax(scale * (content . k + position . r))) v on the CPU, float32. content,
/// position (B, T, heads, width); kv (B, S, 2, heads, width); r (S, heads, width) for distances S -
/// 1 to 0; `first` (B) int64, first visible slot of each row, undefined: 0; `before` as there.
/// Returns (B, T, heads, width); once differentiable in the first four. `dropout` and `seed` as in
/// tiled_attend.
torch::Tensor relative_attend_blocks(const torch::Tensor& content, const torch::Tensor& position,
                                     const torch::Tensor& kv, const torch::Tensor& r,
                                     const torch::Tensor& first, std::int64_t before, double scale,
                                     double dropout = 0, std::uint64_t seed = 0);

}  // namespace nn
