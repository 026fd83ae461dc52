#include "plain_transformer_xl.h"

#include <algorithm>
#include <cmath>

namespace plain {
namespace {

using torch::Tensor;
using Vectors = std::vector<Tensor>;

const std::string kName = "transformer-xl.";

Tensor norm(const nn::ModelOptions& o, const Weights& w, const std::string& name, const Tensor& x) {
  const auto bias = w.count(name + ".bias") ? w.at(name + ".bias") : Tensor();
  return torch::layer_norm(
      x, {x.size(0)}, w.at(name + ".weight"), bias, o.transformer.norm_epsilon);
}

/// R(distance): sines, then cosines.
Tensor distance_vector(
    std::int64_t distance, std::int64_t clamp, std::int64_t d, torch::ScalarType type) {
  if (clamp > 0) distance = std::min(distance, clamp);
  auto row = torch::zeros({d}, torch::kFloat64);
  for (std::int64_t i = 0; i < d / 2; ++i) {
    const double angle = static_cast<double>(distance) / std::pow(10000.0, 2.0 * i / d);
    row[i] = std::sin(angle);
    row[d / 2 + i] = std::cos(angle);
  }
  return row.to(type);
}

Tensor attended(const nn::ModelOptions& o, const Weights& w, std::int64_t layer,
    const Vectors& keys, std::size_t query, std::int64_t length) {
  const auto name = kName + "h." + std::to_string(layer);
  const auto d = o.shape.d_model, heads = o.shape.heads, width = d / heads;
  const auto biases = o.transformer_xl.shared_biases ? kName + "biases" : name + ".biases";
  const auto fused = w.at(name + ".attn.c_attn.weight");
  const auto part = [&](std::int64_t which, std::int64_t head) {
    return fused.narrow(0, which * d + head * width, width);
  };
  Vectors outputs;
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto q = part(0, head).mv(keys[query]);
    const auto u = w.at(biases + ".content")[head], v = w.at(biases + ".position")[head];
    const auto far = w.at(name + ".attn.c_position.weight").narrow(0, head * width, width);
    Vectors scores, values;
    for (std::size_t j = 0; j <= query; ++j) {
      const auto distance = static_cast<std::int64_t>(query - j);
      if (o.layer_memory.same_length == "on" && distance > length) continue;
      const auto r =
          far.mv(distance_vector(distance, o.transformer_xl.clamp_length, d, q.scalar_type()));
      scores.push_back(((q + u).dot(part(1, head).mv(keys[j])) + (q + v).dot(r)) /
                       std::sqrt(static_cast<double>(width)));
      values.push_back(part(2, head).mv(keys[j]));
    }
    const auto share = torch::stack(scores).softmax(0);
    outputs.push_back(share.matmul(torch::stack(values)));
  }
  return w.at(name + ".attn.c_proj.weight").mv(torch::cat(outputs));
}

}  // namespace

Output transformer_xl(const nn::ModelOptions& o, const Weights& w,
    const std::vector<std::vector<std::int64_t>>& segments, bool detach) {
  const bool pre = o.transformer.norm == "pre";
  const auto lengths = nn::parse_layer_memory(o.layer_memory.layer_memory, o.shape.layers);
  std::vector<Vectors> memory(static_cast<std::size_t>(o.shape.layers));
  Vectors all_f, all_g;
  for (const auto& ids : segments) {
    Vectors x, g;
    for (const auto id : ids) {
      auto token = word_vector(o, w, kName + "wte.", id);
      if (o.vocabulary.scale_embedding) token = token * std::sqrt(double(o.shape.d_model));
      x.push_back(token);
    }
    for (std::int64_t layer = 0; layer < o.shape.layers; ++layer) {
      const auto name = kName + "h." + std::to_string(layer);
      auto& past = memory[static_cast<std::size_t>(layer)];
      auto keys = past;
      keys.insert(keys.end(), x.begin(), x.end());
      const auto length = lengths[static_cast<std::size_t>(layer)];
      const auto begin = std::max<std::int64_t>(0, std::ssize(keys) - length);
      Vectors next(keys.begin() + begin, keys.end());
      if (detach)
        for (auto& token : next) token = token.detach();
      if (pre)
        for (auto& key : keys) key = norm(o, w, name + ".ln_1", key);
      const auto before = past.size();
      g.clear();
      for (std::size_t t = 0; t < x.size(); ++t) {
        x[t] = x[t] + attended(o, w, layer, keys, before + t, length);
        if (!pre) x[t] = norm(o, w, name + ".ln_1", x[t]);
        g.push_back(pre ? norm(o, w, name + ".ln_2", x[t]) : x[t]);
        const auto inner = w.at(name + ".mlp.c_fc.weight").mv(g[t]) + w.at(name + ".mlp.c_fc.bias");
        x[t] = x[t] + w.at(name + ".mlp.c_proj.weight").mv(torch::gelu(inner, "tanh")) +
               w.at(name + ".mlp.c_proj.bias");
        if (!pre) x[t] = norm(o, w, name + ".ln_2", x[t]);
      }
      past = next;
    }
    if (pre && o.transformer.final_norm)
      for (auto& token : x) token = norm(o, w, kName + "ln_f", token);
    if (o.shape.memory_key == "output") g = x;
    all_f.insert(all_f.end(), x.begin(), x.end());
    all_g.insert(all_g.end(), g.begin(), g.end());
  }
  return {torch::stack(all_f), torch::stack(all_g)};
}

}  // namespace plain
