#pragma once
// Keys and values of Memory Mosaics' units (Zhang et al. 2024, section 4): leaky averages and
// mixtures of neighbours, normalised for each head.

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

}  // namespace nn
