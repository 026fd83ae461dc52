#pragma once
// Contextual memories of bounded size, for all heads of all rows; bounded_slots_kernels.h describes
// one head.

#include "core/base.h"
#include "nn/base/torch.h"

namespace nn {

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
