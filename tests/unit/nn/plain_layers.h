#pragma once
// Pieces of models written out in plain loops, for comparison: maps, norms, and a stack of two
// layers with a mixer and a feed-forward network each.

#include "properties.h"

namespace plain {

inline torch::Tensor sigmoid(const torch::Tensor& x) { return 1 / (1 + (-x).exp()); }

inline torch::Tensor layer_norm(
    const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const auto centred = x - x.mean();
  return centred / (centred.square().mean() + 1e-5).sqrt() * weight + bias;
}

/// The weights of one module.
struct Module {
  const properties::Weights& w;
  std::string name;
  torch::Tensor operator()(const char* part) const { return w[name + "." + part]; }
  torch::Tensor map(const char* part, const torch::Tensor& x) const {
    const auto y = w[name + "." + part + ".weight"].mv(x);
    const auto bias = name + "." + part + ".bias";
    return w.contains(bias) ? y + w[bias] : y;
  }
};

/// The sum of the newest inputs (each (d)), weighted by taps (d, n) whose last is the current one.
inline torch::Tensor newest(const std::vector<torch::Tensor>& inputs, const torch::Tensor& taps) {
  auto sum = torch::zeros_like(inputs.back());
  for (std::int64_t back = 0; back < taps.size(1); ++back) {
    const auto at = static_cast<std::int64_t>(inputs.size()) - 1 - back;
    if (at >= 0)
      sum = sum + taps.select(1, taps.size(1) - 1 - back) * inputs[static_cast<std::size_t>(at)];
  }
  return sum;
}

/// Mixes reads (T, d) of one layer -> (T, d).
using Mix = std::function<torch::Tensor(const torch::Tensor& reads, const Module& of)>;

inline nn::Hidden two_layers(const torch::Tensor& ids, const properties::Weights& w,
    const std::string& arch, const Mix& mix) {
  const auto each = [](const torch::Tensor& x, const auto& f) {
    std::vector<torch::Tensor> rows;
    for (std::int64_t t = 0; t < x.size(0); ++t) rows.push_back(f(x[t]));
    return torch::stack(rows);
  };
  const auto norm = [&](const torch::Tensor& x, const std::string& name) {
    const Module of{w, arch + "." + name};
    return each(
        x, [&](const torch::Tensor& row) { return layer_norm(row, of("weight"), of("bias")); });
  };
  auto x = w[arch + ".wte.weight"].index_select(0, ids);
  x = x * std::sqrt(static_cast<double>(x.size(1)));
  nn::Hidden made;
  for (const std::string h : {"h.0.", "h.1."}) {
    x = x + mix(norm(x, h + "ln_1"), Module{w, arch + "." + h + "mixer"});
    made.key = norm(x, h + "ln_2");
    const Module network{w, arch + "." + h + "mlp"};
    x = x + each(made.key, [&](const torch::Tensor& row) {
      return network.map("c_proj", torch::gelu(network.map("c_fc", row), "tanh"));
    });
  }
  made.output = norm(x, "ln_f");
  return made;
}

/// The output of a diagonal state space (module NAME.space) at all inputs (each (d)), step by step,
/// its complex numbers as two real ones.
inline torch::Tensor diagonal_space(const std::vector<torch::Tensor>& inputs, const Module& of) {
  using torch::Tensor;
  const auto d = inputs[0].size(0);
  const auto dt = of("space.dt_log").exp().unsqueeze(1);
  const auto real = -of("space.a_log").view({d, -1}).exp(),
             imaginary = of("space.a_imaginary").view({d, -1}), c = of("space.c").view({d, -1, 2});
  const auto size = (dt * real).exp(), angle = dt * imaginary;
  const auto keep_real = size * angle.cos(), keep_imaginary = size * angle.sin();
  // (exp(dt A) - 1) / A, multiplied by C
  const auto length = real.square() + imaginary.square();
  const auto b_real = ((keep_real - 1) * real + keep_imaginary * imaginary) / length,
             b_imaginary = (keep_imaginary * real - (keep_real - 1) * imaginary) / length;
  const auto c_real = c.select(2, 0) * b_real - c.select(2, 1) * b_imaginary,
             c_imaginary = c.select(2, 0) * b_imaginary + c.select(2, 1) * b_real;
  auto h_real = torch::zeros_like(real), h_imaginary = torch::zeros_like(real);
  std::vector<Tensor> out;
  for (const auto& u : inputs) {
    const Tensor next = keep_real * h_real - keep_imaginary * h_imaginary + u.unsqueeze(1);
    h_imaginary = keep_real * h_imaginary + keep_imaginary * h_real;
    h_real = next;
    out.push_back(2 * (c_real * h_real - c_imaginary * h_imaginary).sum(1) + of("space.skip") * u);
  }
  return torch::stack(out);
}

}  // namespace plain
