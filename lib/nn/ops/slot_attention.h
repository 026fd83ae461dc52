#pragma once
// Attention to learned slots that all queries share, as one autograd function on the CPU.

#include "nn/base/torch.h"

namespace nn {

/// True if attend_slots computes this: CPU, float32, queries enough for tiles, heads of whole
/// vectors.
bool attend_slots_fits(const torch::Tensor& queries, const torch::Tensor& keys);

/// softmax(q k^T) v of each head, without a scale: queries (..., d), keys and values (heads, slots,
/// d / heads) -> (..., d), head after head. Differentiable. Kept for the backward pass are the
/// result and a number a query and head; the weights are computed again, tile by tile. Same
/// threads, same bytes; the backward pass has a thread a head at most.
torch::Tensor attend_slots(const torch::Tensor& queries, const torch::Tensor& keys,
                           const torch::Tensor& values);

}  // namespace nn
