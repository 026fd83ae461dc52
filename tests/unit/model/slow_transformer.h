#pragma once
// A gated transformer of a family by the formulas of its paper or release, one product at a time in
// float64. Models that are read are compared with it.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "nn/base/torch.h"

class SlowTransformer {
 public:
  using Row = std::vector<double>;
  /// The properties of a family. Tensors have their names in its files.
  struct Form {
    bool one_more = false;                ///< norms times 1 + weight
    bool before = true;                   ///< norms before the sub-layers
    std::string attention_out, feed_out;  ///< norms after them; empty: none
    std::string feed_in = "post_attention_layernorm";
    std::string qk_norm = "none";  ///< head, whole
    double embedding = 1, residual = 1, logits = 1, attention = 0;
    double epsilon = 1e-6;
    bool gelu = false;
    std::int64_t heads = 2, kv_heads = 1, width = 8;
    std::vector<std::int64_t> windows;  ///< of each layer; 0: all
    std::vector<std::vector<double>>
        inverse;                 ///< of each layer: angles per position; empty: no rotation
    std::vector<double> length;  ///< of each layer: factor of rotated rows
    std::string base = "model.";
  };

  SlowTransformer(Form form, const std::map<std::string, torch::Tensor>& tensors)
      : form_(std::move(form)) {
    for (const auto& [name, tensor] : tensors) weights_[name] = tensor.to(torch::kFloat64);
  }

  /// Returns -log p of each token after the first.
  std::vector<double> nll(const std::vector<std::int64_t>& ids) const {
    const auto& form = form_;
    const auto n = ids.size();
    std::vector<Row> x(n);
    for (std::size_t t = 0; t < n; ++t) {
      x[t] = row(at("embed_tokens"), ids[t]);
      for (auto& value : x[t]) value *= form.embedding;
    }
    for (std::size_t l = 0; l < form.windows.size(); ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      std::vector<Row> h = x;
      if (form.before)
        for (auto& each : h) each = norm(each, layer + "input_layernorm");
      auto a = attention(h, l, layer);
      for (std::size_t t = 0; t < n; ++t) {
        if (!form.attention_out.empty()) a[t] = norm(a[t], layer + form.attention_out);
        add(x[t], a[t], form.residual);
        auto f = feed(form.before ? norm(x[t], layer + form.feed_in) : x[t], layer);
        if (!form.feed_out.empty()) f = norm(f, layer + form.feed_out);
        add(x[t], f, form.residual);
      }
    }
    std::vector<double> losses;
    const auto head =
        weights_.count("lm_head.weight") ? weights_.at("lm_head.weight") : at("embed_tokens");
    for (std::size_t t = 0; t + 1 < n; ++t) {
      auto scores = times(head, norm(x[t], "norm"));
      double most = -INFINITY, sum = 0;
      for (auto& score : scores) most = std::max(most, score /= form.logits);
      for (const auto score : scores) sum += std::exp(score - most);
      losses.push_back(most + std::log(sum) - scores[static_cast<std::size_t>(ids[t + 1])]);
    }
    return losses;
  }

 private:
  const torch::Tensor& at(const std::string& module) const {
    return weights_.at(form_.base + module + ".weight");
  }
  static Row row(const torch::Tensor& matrix, std::int64_t i) {
    const auto values = matrix[i].contiguous();
    return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
  }
  static void add(Row& to, const Row& from, double by) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * from[i];
  }
  static Row times(const torch::Tensor& matrix, const Row& x) {
    Row out;
    for (std::int64_t o = 0; o < matrix.size(0); ++o) {
      const auto w = row(matrix, o);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += w[i] * x[i];
      out.push_back(sum);
    }
    return out;
  }
  Row norm(const Row& x, const std::string& module) const {
    const auto w = row(at(module).unsqueeze(0), 0);
    double square = 0;
    for (const auto value : x) square += value * value;
    const double root = std::sqrt(square / static_cast<double>(x.size()) + form_.epsilon);
    Row out;
    for (std::size_t i = 0; i < x.size(); ++i)
      out.push_back(x[i] / root * (form_.one_more ? 1 + w[i] : w[i]));
    return out;
  }
  Row heads_of(const Row& x, const std::string& module, std::int64_t heads) const {
    if (form_.qk_norm == "none") return x;
    if (form_.qk_norm == "whole") return norm(x, module);
    Row out;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto begin = x.begin() + h * form_.width;
      const auto part = norm(Row(begin, begin + form_.width), module);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  void turn(Row& x, std::size_t layer, std::size_t position) const {
    if (form_.inverse[layer].empty()) return;
    const auto width = static_cast<std::size_t>(form_.width);
    for (std::size_t from = 0; from < x.size(); from += width)
      for (std::size_t i = 0; i < width / 2; ++i) {
        const double angle = form_.inverse[layer][i] * static_cast<double>(position);
        const double c = std::cos(angle) * form_.length[layer],
                     s = std::sin(angle) * form_.length[layer];
        const double a = x[from + i], b = x[from + i + width / 2];
        x[from + i] = a * c - b * s, x[from + i + width / 2] = b * c + a * s;
      }
  }
  std::vector<Row> attention(
      const std::vector<Row>& h, std::size_t l, const std::string& layer) const {
    const auto n = h.size();
    std::vector<Row> q(n), k(n), v(n), out(n);
    for (std::size_t t = 0; t < n; ++t) {
      q[t] = heads_of(
          times(at(layer + "self_attn.q_proj"), h[t]), layer + "self_attn.q_norm", form_.heads);
      k[t] = heads_of(
          times(at(layer + "self_attn.k_proj"), h[t]), layer + "self_attn.k_norm", form_.kv_heads);
      v[t] = times(at(layer + "self_attn.v_proj"), h[t]);
      turn(q[t], l, t), turn(k[t], l, t);
    }
    const auto width = static_cast<std::size_t>(form_.width);
    const double scale =
        form_.attention > 0 ? form_.attention : 1 / std::sqrt(static_cast<double>(width));
    for (std::size_t t = 0; t < n; ++t) {
      Row joined;
      const auto window = static_cast<std::size_t>(form_.windows[l]);
      const std::size_t begin = window > 0 && t + 1 > window ? t + 1 - window : 0;
      for (std::int64_t head = 0; head < form_.heads; ++head) {
        const auto mine = static_cast<std::size_t>(head) * width,
                   theirs = static_cast<std::size_t>(head / (form_.heads / form_.kv_heads)) * width;
        Row shares;
        double most = -INFINITY, sum = 0;
        for (std::size_t s = begin; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < width; ++i) score += q[t][mine + i] * k[s][theirs + i];
          shares.push_back(score * scale), most = std::max(most, shares.back());
        }
        for (auto& share : shares) sum += share = std::exp(share - most);
        for (std::size_t i = 0; i < width; ++i) {
          double value = 0;
          for (std::size_t s = begin; s <= t; ++s)
            value += shares[s - begin] / sum * v[s][theirs + i];
          joined.push_back(value);
        }
      }
      out[t] = times(at(layer + "self_attn.o_proj"), joined);
    }
    return out;
  }
  Row feed(const Row& x, const std::string& layer) const {
    auto gate = times(at(layer + "mlp.gate_proj"), x);
    const auto up = times(at(layer + "mlp.up_proj"), x);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double gelu = g / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
      gate[i] = (form_.gelu ? gelu : g / (1 + std::exp(-g))) * up[i];
    }
    return times(at(layer + "mlp.down_proj"), gate);
  }

  Form form_;
  std::map<std::string, torch::Tensor> weights_;
};
