#pragma once
// Contextual memories of bounded size, all heads of all rows; bounded_slots_kernels.h says what one
// does.

#include <cstdint>

#include "nn/base/torch.h"

namespace nn {

/// What the heads hold, on any device. Pairs' keys and values (B, heads, width, slots) and int64
/// marks (B, heads, 2, slots), see SlotMarks; undefined: nothing yet.
struct HeldSlots {
  torch::Tensor keys, values, marks;
};

/// Queries and pairs (B, T, heads * width) in, what the queries read (B, T, heads * width) out;
/// `completes` (B, T) bool on the CPU: the steps at which a pair goes in. Updates `held`, whose
/// marks are on the CPU afterwards. Computed on the CPU, without gradient.
torch::Tensor read_bounded_slots(const torch::Tensor& queries, const torch::Tensor& pair_keys,
                                 const torch::Tensor& pair_values, const torch::Tensor& completes,
                                 std::int64_t heads, std::int64_t slots, bool lru, HeldSlots& held);

}  // namespace nn
