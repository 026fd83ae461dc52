#include "nn/layers/positions.h"

#include <bit>
#include <cmath>

#include "core/error.h"

namespace nn {

Positions parse_positions(const std::string& name) {
  if (name == "learned") return Positions::learned;
  if (name == "sinusoidal") return Positions::sinusoidal;
  if (name == "rope") return Positions::rope;
  if (name == "alibi") return Positions::alibi;
  if (name == "none") return Positions::none;
  core::fail(core::Code::bad_config,
             "positions: '{}' is none of learned, sinusoidal, rope, alibi, none", name);
}

torch::Tensor sinusoids(const torch::Tensor& positions, std::int64_t d) {
  const auto half = d / 2;
  const auto step = half > 1 ? std::log(10000.0) / static_cast<double>(half - 1) : 0.0;
  const auto frequency = torch::arange(half, torch::kFloat64).mul(-step).exp();
  const auto angle = positions.cpu().to(torch::kFloat64).unsqueeze(-1) * frequency;
  const auto table = torch::cat({angle.sin(), angle.cos()}, -1);
  return d % 2 == 0 ? table : torch::constant_pad_nd(table, {0, 1});
}

Rotation::Rotation(const torch::Tensor& positions, std::int64_t d,
                   const torch::TensorOptions& options) {
  const auto frequency = torch::arange(d / 2, torch::kFloat64)
                             .mul(-2.0 * std::log(10000.0) / static_cast<double>(d))
                             .exp();
  const auto angle = positions.cpu().to(torch::kFloat64).unsqueeze(-1) * frequency;
  cos = angle.cos().to(options).unsqueeze(1);
  sin = angle.sin().to(options).unsqueeze(1);
}

torch::Tensor Rotation::apply(const torch::Tensor& x) const {
  const auto halves = x.chunk(2, -1);
  return torch::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

torch::Tensor alibi_slopes(std::int64_t heads) {
  const auto of_power = [](std::int64_t n) {
    return torch::arange(1, n + 1, torch::kFloat64).mul(-8.0 / static_cast<double>(n)).exp2();
  };
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  if (below == heads) return of_power(heads);
  const auto above = of_power(2 * below).slice(0, 0, torch::indexing::None, 2);
  return torch::cat({of_power(below), above.slice(0, 0, heads - below)});
}

}  // namespace nn
