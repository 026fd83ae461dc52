#pragma once
// Tiled attention on the CPU, with optional dropout of attention weights.
// Attention with relative positions in blocks of queries, without (T, S) scores in memory.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

/// Returns a seed for one call's dropout from torch's CPU generator, whose state checkpoints save.
std::uint64_t draw_seed();

struct TiledAttend {
  double scale = 1;     ///< factor on query-key products
  bool causal = false;  ///< requires S >= T; query i sees the slots up to S - T + i
  double dropout = 0;   ///< 0 <= p < 1, with resolution 2^-32
  std::uint64_t seed = 0;
};

/// Returns whether tiled_attend supports the inputs: CPU, float32, equal numbers of rows, a mask
/// without gradient.
bool tiled_attend_fits(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
    const torch::Tensor& mask);

/// Computes dropout(softmax(scale q k^T + mask)) v: q (B, heads, T, width), k and v (B, heads, S,
/// width), mask undefined or finite and expandable to (B, heads, T, S), not with `causal`. Returns
/// (B, heads, T, width) with the memory layout (B, T, heads, width). Once differentiable in q, k
/// and v. Uses no (T, S) matrix. DropoutStream selects the dropped weights; head h of row b is its
/// head b heads + h. Each thread computes heads of rows; results are bit-identical for any number
/// of threads.
torch::Tensor tiled_attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
    const torch::Tensor& mask, const TiledAttend& options);

/// Computes dropout(softmax(scale * (content . k + position . r))) v on the CPU, float32. content,
/// position (B, T, heads, width); kv (B, S, 2, heads, width); r (S, heads, width) for distances S -
/// 1 to 0; `first` (B) int64, first visible slot of each row, undefined: 0; `before` as there.
/// Returns (B, T, heads, width); once differentiable in the first four. `dropout` and `seed` as in
/// tiled_attend.
torch::Tensor relative_attend_blocks(const torch::Tensor& content, const torch::Tensor& position,
    const torch::Tensor& kv, const torch::Tensor& r, const torch::Tensor& first,
    std::int64_t before, double scale, double dropout = 0, std::uint64_t seed = 0);

}  // namespace nn
