#include "plain_transformer.h"

#include <cmath>

namespace plain {
namespace {

torch::Tensor matrix(const Weights& weights, const std::string& name, const torch::Tensor& x) {
  auto y = weights.at(name + ".weight").mv(x);
  if (weights.count(name + ".bias")) y = y + weights.at(name + ".bias");
  return y;
}

torch::Tensor norm(const nn::TransformerOptions& options, const Weights& weights,
    const std::string& name, const torch::Tensor& x) {
  const double epsilon = options.norm_epsilon;
  const auto centred = options.norm_kind == "layer" ? x - x.mean() : x;
  const auto& weight = weights.at(name + ".weight");
  auto y = centred / (centred.square().mean() + epsilon).sqrt() *
           (options.norm_kind == "rms-one" ? 1 + weight : weight);
  if (weights.count(name + ".bias")) y = y + weights.at(name + ".bias");
  return y;
}

torch::Tensor activation(const std::string& name, const torch::Tensor& x) {
  if (name == "relu") return x.clamp_min(0);
  if (name == "silu") return x / (1 + torch::exp(-x));
  if (name == "gelu-exact") return x * 0.5 * (1 + torch::erf(x / std::sqrt(2.0)));
  return x * 0.5 * (1 + torch::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Vaswani's table as fairseq computes it.
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

/// Returns the angle per position of pair i of d / 2.
double frequency(const nn::RopeOptions& rope, std::int64_t i, std::int64_t d) {
  const double w = 1 / std::pow(rope.theta, 2.0 * static_cast<double>(i) / d);
  const double length = 2 * M_PI / w, trained = static_cast<double>(rope.trained);
  if (rope.scaling == "linear") return w / rope.factor;
  if (rope.scaling == "llama3") {
    if (length > trained / rope.low) return w / rope.factor;
    if (length < trained / rope.high) return w;
    const double smooth = (trained / length - rope.low) / (rope.high - rope.low);
    return (1 - smooth) * w / rope.factor + smooth * w;
  }
  if (rope.scaling == "yarn") {
    const auto dimension = [&](double turns) {  // whose wavelength is trained / turns
      return d * std::log(trained / (turns * 2 * M_PI)) / (2 * std::log(rope.theta));
    };
    const double low = std::max(0.0, std::floor(dimension(rope.fast_beta)));
    const double high = std::min(d - 1.0, std::ceil(dimension(rope.slow_beta)));
    const double ramp = (i - low) / (low == high ? 0.001 : high - low);
    const double scaled = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return w / rope.factor * scaled + w * (1 - scaled);
  }
  return w;
}

/// Rotates the pairs (x_i, x_{i + n/2}) of the first n by position * frequency.
torch::Tensor rotated(const nn::RopeOptions& rope, const torch::Tensor& x, std::int64_t position) {
  const auto n = static_cast<std::int64_t>(rope.share * static_cast<double>(x.size(0)));
  const double grown = rope.scaling == "yarn" ? 0.1 * std::log(rope.factor) + 1 : 1;
  std::vector<torch::Tensor> low, high;
  for (std::int64_t i = 0; i < n / 2; ++i) {
    const double angle = static_cast<double>(position) * frequency(rope, i, n);
    low.push_back(grown * (x[i] * std::cos(angle) - x[i + n / 2] * std::sin(angle)));
    high.push_back(grown * (x[i] * std::sin(angle) + x[i + n / 2] * std::cos(angle)));
  }
  low.insert(low.end(), high.begin(), high.end());
  for (std::int64_t i = n; i < x.size(0); ++i) low.push_back(x[i]);
  return torch::stack(low);
}

std::vector<torch::Tensor> attention(const nn::ModelOptions& options, const Weights& weights,
    const std::string& name, std::int64_t layer, const std::vector<torch::Tensor>& x,
    torch::Tensor* last) {
  const auto& chosen = options.transformer;
  const auto heads = options.shape.heads;
  const auto kv_heads = chosen.kv_heads > 0 ? chosen.kv_heads : heads;
  const auto width = chosen.d_head > 0 ? chosen.d_head : options.shape.d_model / heads;
  const auto& windows = chosen.attention_window;
  const auto window = windows.empty() ? 0 : windows[layer % std::ssize(windows)];
  auto rope = chosen.rope;
  if (window > 0 && rope.local_theta > 0) rope.theta = rope.local_theta, rope.scaling = "none";
  const double cap = chosen.attention_softcap,
               scale = chosen.attention_scale > 0 ? chosen.attention_scale
                                                  : 1 / std::sqrt(static_cast<double>(width));
  std::vector<torch::Tensor> q, k, v, out, shares;
  for (const auto& token : x) {
    const auto all = matrix(weights, name + ".c_attn", token);
    q.push_back(all.narrow(0, 0, heads * width));
    k.push_back(all.narrow(0, heads * width, kv_heads * width));
    v.push_back(all.narrow(0, (heads + kv_heads) * width, kv_heads * width));
    if (chosen.qk_norm != "whole") continue;
    q.back() = norm(chosen, weights, name + ".q_norm", q.back());
    k.back() = norm(chosen, weights, name + ".k_norm", k.back());
  }
  for (std::size_t t = 0; t < x.size(); ++t) {
    std::vector<torch::Tensor> parts;
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto from = head * kv_heads / heads * width;
      std::vector<torch::Tensor> scores;
      for (std::size_t s = 0; s <= t; ++s) {
        auto one_q = q[t].narrow(0, head * width, width), one_k = k[s].narrow(0, from, width);
        if (chosen.qk_norm == "head") {
          one_q = norm(chosen, weights, name + ".q_norm", one_q);
          one_k = norm(chosen, weights, name + ".k_norm", one_k);
        }
        if (chosen.positions == "rope") {
          one_q = rotated(rope, one_q, static_cast<std::int64_t>(t));
          one_k = rotated(rope, one_k, static_cast<std::int64_t>(s));
        }
        auto score = one_q.dot(one_k) * scale;
        if (cap > 0) score = cap * torch::tanh(score / cap);
        if (chosen.positions == "alibi")  // two heads: slopes 2^-4, 2^-8
          score = score - std::pow(2.0, -8.0 * (head + 1.0) / heads) * static_cast<double>(t - s);
        const bool too_far = window > 0 && static_cast<std::int64_t>(t - s) >= window;
        scores.push_back(too_far ? score * 0 - INFINITY : score);
      }
      const auto share = torch::stack(scores).softmax(0);
      if (t + 1 == x.size()) shares.push_back(share);
      auto sum = torch::zeros({width}, share.options());
      for (std::size_t s = 0; s <= t; ++s)
        sum = sum + share[static_cast<std::int64_t>(s)] * v[s].narrow(0, from, width);
      parts.push_back(sum);
    }
    out.push_back(matrix(weights, name + ".c_proj", torch::cat(parts)));
  }
  *last = torch::stack(shares);
  return out;
}

torch::Tensor feed_forward(const nn::TransformerOptions& options, const Weights& weights,
    const std::string& name, const torch::Tensor& x) {
  auto inner = matrix(weights, name + ".c_fc", x);
  if (options.feed_forward == "gated") {
    const auto n = inner.size(0) / 2;
    inner = activation(options.activation, inner.narrow(0, 0, n)) * inner.narrow(0, n, n);
  } else {
    inner = activation(options.activation, inner);
  }
  return matrix(weights, name + ".c_proj", inner);
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

Output transformer(
    const nn::ModelOptions& options, const Weights& weights, const std::vector<std::int64_t>& ids) {
  const auto& chosen = options.transformer;
  const std::string& place = chosen.norm;
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
      return norm(chosen, weights, name + which, token);
    };
    auto read = x;
    const bool before = place == "pre" || place == "sandwich" || place == "parallel";
    if (before)
      for (auto& token : read) token = normed(".ln_1", token);
    const auto attended = attention(
        options, weights, name + ".attn", layer, read, &last[static_cast<std::size_t>(layer)]);
    key.clear();
    for (std::size_t t = 0; t < x.size(); ++t) {
      auto first = attended[t];
      if (place == "sublayer") first = normed(".ln_1", first);
      if (place == "sandwich") first = normed(".ln_1_out", first);
      auto middle = x[t] + first;
      if (place == "post") middle = normed(".ln_1", middle);
      const auto& fed = place == "parallel" ? x[t] : middle;
      key.push_back(before ? normed(".ln_2", fed) : fed);
      auto second = feed_forward(chosen, weights, name + ".mlp", key[t]);
      if (place == "sublayer") second = normed(".ln_2", second);
      if (place == "sandwich") second = normed(".ln_2_out", second);
      x[t] = middle + second;
      if (place == "post") x[t] = normed(".ln_2", x[t]);
    }
  }
  if (place != "post" && chosen.final_norm)
    for (auto& token : x) token = norm(chosen, weights, "transformer.ln_f", token);
  if (options.shape.memory_key == "output") key = x;
  return {torch::stack(x), torch::stack(key), last};
}

}  // namespace plain
