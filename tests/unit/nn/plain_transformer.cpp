#include "plain_transformer.h"

#include <cmath>

namespace plain {
namespace {

torch::Tensor matrix(const Weights& weights, const std::string& name, const torch::Tensor& x) {
  auto y = weights.at(name + ".weight").mv(x);
  if (weights.count(name + ".bias")) y = y + weights.at(name + ".bias");
  return y;
}

torch::Tensor norm(const Weights& weights, const std::string& name, const torch::Tensor& x,
                   double epsilon) {
  const auto centred = x - x.mean();
  auto y = centred / (centred.square().mean() + epsilon).sqrt() * weights.at(name + ".weight");
  if (weights.count(name + ".bias")) y = y + weights.at(name + ".bias");
  return y;
}

torch::Tensor activation(const std::string& name, const torch::Tensor& x) {
  if (name == "relu") return x.clamp_min(0);
  if (name == "gelu-exact") return x * 0.5 * (1 + torch::erf(x / std::sqrt(2.0)));
  return x * 0.5 * (1 + torch::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Vaswani's table as fairseq fills it.
torch::Tensor sinusoid(std::int64_t position, std::int64_t d) {
  auto row = torch::zeros({d}, torch::kFloat64);
  const auto half = d / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle =
        static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / (half - 1.0));
    row[i] = std::sin(angle);
    row[half + i] = std::cos(angle);
  }
  return row;
}

/// Pairs (x_i, x_{i + n/2}) turned by position * 10000^(-2i/n).
torch::Tensor rotated(const torch::Tensor& x, std::int64_t position) {
  const auto n = x.size(0);
  std::vector<torch::Tensor> low, high;
  for (std::int64_t i = 0; i < n / 2; ++i) {
    const double angle =
        static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / n);
    low.push_back(x[i] * std::cos(angle) - x[i + n / 2] * std::sin(angle));
    high.push_back(x[i] * std::sin(angle) + x[i + n / 2] * std::cos(angle));
  }
  low.insert(low.end(), high.begin(), high.end());
  return torch::stack(low);
}

std::vector<torch::Tensor> attention(const nn::ModelOptions& options, const Weights& weights,
                                     const std::string& name, const std::vector<torch::Tensor>& x,
                                     torch::Tensor* last) {
  const auto d = options.shape.d_model, heads = options.shape.heads, width = d / heads;
  const auto& positions = options.transformer.positions;
  std::vector<torch::Tensor> fused, out, shares;
  for (const auto& token : x) fused.push_back(matrix(weights, name + ".c_attn", token));
  for (std::size_t t = 0; t < x.size(); ++t) {
    std::vector<torch::Tensor> parts;
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto part = [&](std::size_t token, std::int64_t which) {
        return fused[token].narrow(0, which * d + head * width, width);
      };
      std::vector<torch::Tensor> scores;
      for (std::size_t s = 0; s <= t; ++s) {
        auto q = part(t, 0), k = part(s, 1);
        if (positions == "rope") {
          q = rotated(q, static_cast<std::int64_t>(t));
          k = rotated(k, static_cast<std::int64_t>(s));
        }
        auto score = q.dot(k) / std::sqrt(static_cast<double>(width));
        if (positions == "alibi")  // two heads: slopes 2^-4, 2^-8
          score = score - std::pow(2.0, -8.0 * (head + 1.0) / heads) * static_cast<double>(t - s);
        scores.push_back(score);
      }
      const auto share = torch::stack(scores).softmax(0);
      if (t + 1 == x.size()) shares.push_back(share);
      auto sum = torch::zeros({width}, share.options());
      for (std::size_t s = 0; s <= t; ++s)
        sum = sum + share[static_cast<std::int64_t>(s)] * part(s, 2);
      parts.push_back(sum);
    }
    out.push_back(matrix(weights, name + ".c_proj", torch::cat(parts)));
  }
  *last = torch::stack(shares);
  return out;
}

}  // namespace

torch::Tensor word_vector(const nn::ModelOptions& options, const Weights& weights,
                          const std::string& prefix, std::int64_t id) {
  const auto& cutoffs = options.vocabulary.cutoffs;
  if (cutoffs.empty()) return weights.at(prefix + "weight")[id];
  std::size_t band = 0;
  while (band < cutoffs.size() && id >= cutoffs[band]) ++band;
  const auto row =
      weights.at(prefix + "table_" + std::to_string(band))[id - (band ? cutoffs[band - 1] : 0)];
  return weights.at(prefix + "projection_" + std::to_string(band)).mv(row);
}

Output transformer(const nn::ModelOptions& options, const Weights& weights,
                   const std::vector<std::int64_t>& ids) {
  const auto& chosen = options.transformer;
  const bool pre = chosen.norm == "pre";
  const auto d = options.shape.d_model;
  std::vector<torch::Tensor> x, key, last(static_cast<std::size_t>(options.shape.layers));
  for (std::size_t t = 0; t < ids.size(); ++t) {
    auto token = word_vector(options, weights, "transformer.wte.", ids[t]);
    if (options.vocabulary.scale_embedding) token = token * std::sqrt(static_cast<double>(d));
    const auto place = static_cast<std::int64_t>(t);
    if (chosen.positions == "learned") token = token + weights.at("transformer.wpe.weight")[place];
    if (chosen.positions == "sinusoidal")
      token = token + sinusoid(place, d).to(token.scalar_type());
    x.push_back(token);
  }
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const auto name = "transformer.h." + std::to_string(layer);
    const auto normed = [&](const std::string& which, const torch::Tensor& token) {
      return norm(weights, name + which, token, chosen.norm_epsilon);
    };
    auto read = x;
    if (pre)
      for (auto& token : read) token = normed(".ln_1", token);
    const auto attended =
        attention(options, weights, name + ".attn", read, &last[static_cast<std::size_t>(layer)]);
    key.clear();
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = x[t] + attended[t];
      if (!pre) x[t] = normed(".ln_1", x[t]);
      key.push_back(pre ? normed(".ln_2", x[t]) : x[t]);
      const auto inner = activation(chosen.activation, matrix(weights, name + ".mlp.c_fc", key[t]));
      x[t] = x[t] + matrix(weights, name + ".mlp.c_proj", inner);
      if (!pre) x[t] = normed(".ln_2", x[t]);
    }
  }
  if (pre && chosen.final_norm)
    for (auto& token : x) token = norm(weights, "transformer.ln_f", token, chosen.norm_epsilon);
  if (options.shape.memory_key == "output") key = x;
  return {torch::stack(x), torch::stack(key), last};
}

}  // namespace plain
