#include "nn/layers/positions.h"

#include "nn/base/upload.h"

namespace nn {

Positions parse_positions(const std::string& name) {
  if (name == "learned") return Positions::learned;
  if (name == "sinusoidal") return Positions::sinusoidal;
  if (name == "rope") return Positions::rope;
  if (name == "alibi") return Positions::alibi;
  if (name == "none") return Positions::none;
  core::bad_config("positions: takes learned, sinusoidal, rope, alibi or none, not '{}'", name);
}

torch::Tensor sinusoids(const torch::Tensor& positions, std::int64_t d) {
  const auto half = d / 2;
  const auto step = half > 1 ? std::log(10000.0) / static_cast<double>(half - 1) : 0.0;
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(positions.device());
  const auto frequency = torch::arange(half, numbers).mul(-step).exp();
  const auto angle = positions.to(torch::kFloat64).unsqueeze(-1) * frequency;
  const auto table = torch::cat({angle.sin(), angle.cos()}, -1);
  return d % 2 == 0 ? table : torch::constant_pad_nd(table, {0, 1});
}

std::vector<double> rope_frequencies(const RopeOptions& rope, std::int64_t d) {
  const auto width = static_cast<double>(d), trained = static_cast<double>(rope.trained);
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < d / 2; ++i)
    frequencies.push_back(std::pow(rope.theta, -2 * static_cast<double>(i) / width));
  // kept(i) is the share of frequency i that is not divided by the factor.
  const auto blend = [&](const auto& kept) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double share = std::clamp(kept(i), 0.0, 1.0);
      frequencies[i] *= share + (1 - share) / rope.factor;
    }
  };
  if (rope.scaling == "longrope")
    for (std::size_t i = 0; i < std::min(frequencies.size(), rope.factors.size()); ++i)
      frequencies[i] /= rope.factors[i];
  if (rope.scaling == "linear") blend([](std::size_t) { return 0.0; });
  if (rope.scaling == "llama3")
    blend([&](std::size_t i) {
      const double turns = trained * frequencies[i] / (2 * M_PI);
      return (turns - rope.low) / (rope.high - rope.low);
    });
  if (rope.scaling == "yarn") {
    const auto pair_of = [&](double turns) {
      return width * std::log(trained / (turns * 2 * M_PI)) / (2 * std::log(rope.theta));
    };
    const double first = std::max(std::floor(pair_of(rope.fast_beta)), 0.0);
    const double last = std::min(std::ceil(pair_of(rope.slow_beta)), width - 1);
    const double span = last != first ? last - first : 1e-3;
    blend([&](std::size_t i) { return 1 - (static_cast<double>(i) - first) / span; });
  }
  return frequencies;
}

bool turns_locally(const RopeOptions& rope, std::int64_t window) {
  return window > 0 && rope.local_theta > 0;
}

RopeOptions rope_of(const RopeOptions& rope, std::int64_t window) {
  if (!turns_locally(rope, window)) return rope;
  return {.theta = rope.local_theta, .share = rope.share};
}

bool turns_layer(const RopeOptions& rope, std::int64_t i) {
  return rope.skip == 0 || (i + 1) % rope.skip != 0;
}

double rope_attention_factor(const RopeOptions& rope) {
  if (rope.length > 0) return rope.length;
  return rope.scaling == "yarn" ? 1 + std::log(rope.factor) / 10 : 1;
}

Rotation::Rotation(const torch::Tensor& positions, std::int64_t d, const RopeOptions& rope,
    const torch::TensorOptions& options) {
  const auto frequencies = torch::tensor(rope_frequencies(rope, d), torch::kFloat64);
  const auto angle =
      positions.to(torch::kFloat64).unsqueeze(-1) * upload(frequencies, positions.device());
  const double length = rope_attention_factor(rope);
  cos = upload(angle.cos().mul_(length), options).unsqueeze(1);
  sin = upload(angle.sin().mul_(length), options).unsqueeze(1);
}

torch::Tensor Rotation::apply(const torch::Tensor& x) const {
  const auto d = 2 * cos.size(-1), rest = x.size(-1) - d;
  const auto halves = x.narrow(-1, 0, d).chunk(2, -1);
  std::vector<torch::Tensor> parts = {
      halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin};
  if (rest > 0) parts.push_back(x.narrow(-1, d, rest));
  return torch::cat(parts, -1);
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
