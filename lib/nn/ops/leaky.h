#pragma once
// The keys and values of Memory Mosaics' units (Zhang et al. 2024, section 4): leaky averages and
// mixtures of neighbours, normalised a head at a time.

#include "nn/base/torch.h"

namespace nn {

struct LeakyKeys {
  torch::Tensor keys;  ///< (B, T, d)
  torch::Tensor sums;  ///< (B, T, d): the averages themselves; undefined unless asked for
};

/// sums_t = decay_h sums_{t-1} + x_t; keys_t = scale_h sums_t / |sums_t|_h: x (B, T, d), decay and
/// scale (heads), before (B, d): the sums before the first step (undefined: 0). Differentiable in
/// all of them. On the CPU, and in float32 on a GPU, a loop over time with a backward of its own;
/// elsewhere log2(T) passes that add a shifted sequence. No (T, T) matrix.
LeakyKeys leaky_keys(const torch::Tensor& x, const torch::Tensor& decay, const torch::Tensor& scale,
                     const torch::Tensor& before, bool want_sums);

/// Between each two neighbours: scale_h n_t / |n_t|_h, n_t = mix_h x_t + (1 - mix_h) x_{t+1}:
/// x (B, T + 1, d), mix and scale (heads) -> (B, T, d). Differentiable.
torch::Tensor mixed_values(const torch::Tensor& x, const torch::Tensor& mix,
                           const torch::Tensor& scale);

/// scale_h x / |x|_h: x (..., d), scale (heads).
torch::Tensor normalised(const torch::Tensor& x, const torch::Tensor& scale);

}  // namespace nn
