#pragma once
// Where a token stands, in the ways that transformers are told.

#include <string>

#include "nn/base/torch.h"

namespace nn {

enum class Positions { learned, sinusoidal, rope, alibi, none };
/// Throws Error{bad_config}.
Positions parse_positions(const std::string& name);

/// positions (…) int64 -> (…, d) float64: sin(p w_i) for i < d/2, then cos(p w_i), with
///   w_i = 10000^(-i / (d/2 - 1))
/// A last odd column is 0 (fairseq's table).
torch::Tensor sinusoids(const torch::Tensor& positions, std::int64_t d);

/// Rotary embedding (Su et al. 2021), halves paired as (x_i, x_{i + d/2}), angles p 10000^(-2i/d).
struct Rotation {
  torch::Tensor cos, sin;  ///< (B or 1, 1, T, d/2)
  /// positions (B or 1, T) int64; d even. The angles are computed in float64.
  Rotation(const torch::Tensor& positions, std::int64_t d, const torch::TensorOptions& options);
  torch::Tensor apply(const torch::Tensor& x) const;  ///< (B, heads, T, d)
};

/// Slopes of ALiBi (Press et al. 2022): (heads) float64, 2^(-8 (h + 1) / heads) for a power of two;
/// else those of the power below, filled up with every other slope of the power above.
torch::Tensor alibi_slopes(std::int64_t heads);

}  // namespace nn
