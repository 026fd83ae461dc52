#pragma once
// Keys and values of Memory Mosaics' units (Zhang et al. 2024, section 4): leaky averages and
// mixtures of neighbours, normalised for each head.
// Keys of Memory Mosaics v2 (Zhang and Bottou 2025, arXiv 2507.03285, eq. 8): averages with
// input-dependent gate and decay.

#include "nn/base/torch.h"

namespace nn {

struct LeakyKeys {
  torch::Tensor keys;  ///< (B, T, d)
  torch::Tensor sums;  ///< (B, T, d): the averages; undefined unless requested
};

/// Computes sums_t = decay_h sums_{t-1} + x_t and keys_t = scale_h sums_t / |sums_t|_h: x (B, T,
/// d), decay and scale (heads), before (B, d): sums before the first step (undefined: 0).
/// Differentiable in all inputs. On the CPU, and in float32 on a GPU, it is a loop over time with
/// its own backward pass; otherwise log2(T) passes that add a shifted sequence. Uses no (T, T)
/// matrix.
LeakyKeys leaky_keys(const torch::Tensor& x, const torch::Tensor& decay, const torch::Tensor& scale,
    const torch::Tensor& before, bool want_sums);

/// Computes scale_h n_t / |n_t|_h with n_t = mix_h x_t + (1 - mix_h) x_{t+1}, for neighbours of x
/// (B, T + 1, d), mix and scale (heads) -> (B, T, d). Differentiable.
torch::Tensor mixed_values(
    const torch::Tensor& x, const torch::Tensor& mix, const torch::Tensor& scale);

/// Returns scale_h x / |x|_h: x (..., d), scale (heads).
torch::Tensor normalised(const torch::Tensor& x, const torch::Tensor& scale);

/// Averages carried from call to call, divided by e^level to prevent overflow: sums (B, d), levels
/// (B, heads). A head with zero sums is fresh, for any level.
struct GatedSums {
  torch::Tensor sums, levels;
};

struct GatedKeys {
  torch::Tensor keys;    ///< (B, T, d), norm 1 in each head
  torch::Tensor sums;    ///< (B, T, d): as GatedSums, after each step; undefined unless requested
  torch::Tensor levels;  ///< (B, T, heads), without gradient; undefined unless requested
};

/// Computes average_t = e^{gate_t} x_t + e^{decay_t} average_{t-1} and keys_t = average_t /
/// |average_t| in each head: x (B, T, d), gate and decay (B, T, heads), decay at most 0, T at least
/// 1. Stores average_t e^{-level_t} with level_t = max(gate_t, decay_t + level_{t-1}), so that no
/// exponent exceeds 0. Undefined `before.sums`: no carried state. Differentiable in x, gate, decay
/// and before.sums. On the CPU, and in float32 with a device's kernels, it is a loop over time with
/// its own backward pass; otherwise gated_keys_chunks.
GatedKeys gated_keys(const torch::Tensor& x, const torch::Tensor& gate, const torch::Tensor& decay,
    const GatedSums& before, bool want_sums);

/// Computes the keys with torch operators in chunks of 64 steps: products within a chunk, and a
/// state for each chunk.
GatedKeys gated_keys_chunks(const torch::Tensor& x, const torch::Tensor& gate,
    const torch::Tensor& decay, const GatedSums& before, bool want_sums);

}  // namespace nn
