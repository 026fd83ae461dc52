#pragma once
// Attention to learned slots that all queries share, as one autograd function on the CPU.
// Contextual memories of bounded size, for all heads of all rows; bounded_slots_kernels.h describes
// one head.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

/// Returns whether attend_slots supports the input: CPU, float32, enough queries for tiles, head
/// widths of whole vector registers.
bool attend_slots_fits(const torch::Tensor& queries, const torch::Tensor& keys);

/// Computes softmax(q k^T) v for each head, without a scale: queries (..., d), keys and values
/// (heads, slots, d / heads) -> (..., d), head after head. Differentiable. Stores the result and a
/// number for each query and head for the backward pass, which recomputes the weights tile by tile.
/// Bit-reproducible for a fixed number of threads; the backward pass uses at most one thread for
/// each head.
torch::Tensor attend_slots(
    const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values);

/// Stored pairs of all heads, on any device: keys and values (B, heads, width, slots), and int64
/// marks (B, heads, 2, slots), see SlotMarks; undefined: none yet.
struct HeldSlots {
  torch::Tensor keys, values, marks;
};

/// Reads the memories for queries (B, T, heads * width), and stores the pairs (B, T, heads * width)
/// at steps where `completes` (B, T), bool on the CPU, is true. Returns (B, T, heads * width).
/// Updates `held`, whose marks are then on the CPU. Computes on the CPU, without gradient.
torch::Tensor read_bounded_slots(const torch::Tensor& queries, const torch::Tensor& pair_keys,
    const torch::Tensor& pair_values, const torch::Tensor& completes, std::int64_t heads,
    std::int64_t slots, bool lru, HeldSlots& held);

}  // namespace nn
