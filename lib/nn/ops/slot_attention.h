#pragma once
// Attention to learned slots that all queries share, as one autograd function on the CPU.

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
torch::Tensor attend_slots(const torch::Tensor& queries, const torch::Tensor& keys,
                           const torch::Tensor& values);

}  // namespace nn
