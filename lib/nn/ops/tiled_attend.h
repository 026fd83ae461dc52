#pragma once
// Attention in tiles on the CPU, with dropout on its weights or without.

#include <cstdint>

#include "nn/base/torch.h"

namespace nn {

/// A seed for one call's dropout, from torch's CPU generator, whose state checkpoints keep.
std::uint64_t draw_seed();

struct TiledAttend {
  double scale = 1;     ///< of products of queries and keys
  bool causal = false;  ///< S >= T; query i sees the slots up to S - T + i
  double dropout = 0;   ///< 0 <= p < 1, to 2^-32
  std::uint64_t seed = 0;
};

/// Whether tiled_attend takes these: CPU, float32, one number of rows, a mask without a gradient.
bool tiled_attend_fits(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask);

/// dropout(softmax(scale q k^T + mask)) v: q (B, heads, T, width), k and v (B, heads, S, width),
/// mask undefined or finite and expandable to (B, heads, T, S), not with `causal`. Returns (B,
/// heads, T, width), which lies as (B, T, heads, width). Differentiable in q, k and v, once. No (T,
/// S) matrix; which weights stay is DropoutStream's: row b's head h is its head b heads + h. A
/// thread for a head of a row; the same bits whatever their number.
torch::Tensor tiled_attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                           const torch::Tensor& mask, const TiledAttend& options);

}  // namespace nn
