#pragma once
// The keys of Memory Mosaics v2's memories (Zhang and Bottou 2025, arXiv 2507.03285, eq. 8): an
// average whose gate and decay the input chooses.

#include "nn/base/torch.h"

namespace nn {

/// The averages carried from call to call, divided by e^level so that no gate overflows them: sums
/// (B, d), levels (B, heads). A head of zeros is fresh, whatever its level.
struct GatedSums {
  torch::Tensor sums, levels;
};

struct GatedKeys {
  torch::Tensor keys;    ///< (B, T, d), each head of norm 1
  torch::Tensor sums;    ///< (B, T, d): as GatedSums, after each step; undefined unless asked for
  torch::Tensor levels;  ///< (B, T, heads), without gradient; undefined unless asked for
};

/// average_t = e^{gate_t} x_t + e^{decay_t} average_{t-1}, keys_t = average_t / |average_t| in each
/// head: x (B, T, d), gate and decay (B, T, heads), decay at most 0, T at least 1. Since a key has
/// norm 1, what is kept is average_t e^{-level_t} with level_t = max(gate_t, decay_t +
/// level_{t-1}): no exponent is above 0. `before.sums` undefined: nothing is carried in.
/// Differentiable in x, gate, decay and before.sums. On the CPU, and in float32 by a device's
/// kernels, a loop over time with a backward of its own; elsewhere gated_keys_chunks.
GatedKeys gated_keys(const torch::Tensor& x, const torch::Tensor& gate, const torch::Tensor& decay,
                     const GatedSums& before, bool want_sums);

/// The same in torch's operators, in chunks of 64 steps: products within a chunk, a state a chunk.
GatedKeys gated_keys_chunks(const torch::Tensor& x, const torch::Tensor& gate,
                            const torch::Tensor& decay, const GatedSums& before, bool want_sums);

}  // namespace nn
