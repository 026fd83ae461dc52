#pragma once
// Positional encodings of transformers.

#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace nn {

enum class Positions { learned, sinusoidal, rope, alibi, none };
/// Parses the name. Throws Error{bad_config}.
Positions parse_positions(const std::string& name);

/// Maps positions (...) int64 to (..., d) float64: sin(p w_i) for i < d/2, then cos(p w_i), with
///   w_i = 10000^(-i / (d/2 - 1))
/// A last odd column is 0 (fairseq's table).
torch::Tensor sinusoids(const torch::Tensor& positions, std::int64_t d);

/// Returns the angle of the i-th pair of a token at position p, divided by p: w_i for i < d/2, d
/// even.
///   none    w_i = theta^(-2i/d)
///   linear  w_i / factor (Chen et al. 2023)
///   dynamic w_i; a row of more than `trained` tokens would have values that depend on its length
///           (NTK-aware scaling), and is refused (BlockStack::context)
///   llama3  w_i for pairs with more than `high` rotations in `trained` tokens, w_i / factor for
///           pairs with fewer than `low`, between them an interpolation linear in the rotations
///           (Llama 3.1)
///   yarn    an interpolation linear in i, between the pairs with `fast_beta` and `slow_beta`
///           rotations, rounded outwards (Peng et al. 2023)
///   longrope  w_i / factors[i] in rows of up to `trained` tokens; a longer row would use
///           long_factors, and is refused (Ding et al. 2024)
std::vector<double> rope_frequencies(const RopeOptions& rope, std::int64_t d);
/// Returns whether layers with this window (0: full attention) have separate angles.
bool turns_locally(const RopeOptions& rope, std::int64_t window);
/// Returns the options of layers with this window.
RopeOptions rope_of(const RopeOptions& rope, std::int64_t window);
/// Returns whether layer i rotates queries and keys.
bool turns_layer(const RopeOptions& rope, std::int64_t i);
/// Returns the factor on rotated queries and keys: rope.length, else 1, or for yarn 1 + ln(factor)
/// / 10.
double rope_attention_factor(const RopeOptions& rope);

/// Rotary embedding (Su et al. 2021), halves paired as (x_i, x_{i + d/2}), angles p w_i.
struct Rotation {
  torch::Tensor cos, sin;  ///< (B or 1, 1, T, d/2)
  /// positions (B or 1, T) int64; d even. The angles are computed in float64.
  Rotation(const torch::Tensor& positions, std::int64_t d, const RopeOptions& rope,
      const torch::TensorOptions& options);
  /// Rotates the first d elements of (B, heads, T, width) and copies the rest.
  torch::Tensor apply(const torch::Tensor& x) const;
};

/// Returns the slopes of ALiBi (Press et al. 2022): (heads) float64, 2^(-8 (h + 1) / heads) for a
/// power of two. Otherwise they are the slopes of the next lower power, followed by every other
/// slope of the next higher power.
torch::Tensor alibi_slopes(std::int64_t heads);

}  // namespace nn
