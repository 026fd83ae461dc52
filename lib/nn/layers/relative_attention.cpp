#include "nn/layers/relative_attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include "nn/base/cuda.h"
#include "nn/base/upload.h"
#include "nn/layers/attention.h"
#include "nn/ops/tiled_attend.h"

namespace nn {
namespace {

using torch::Tensor;

// Returns position (B, T, heads, width) . r (S, heads, width) as (B, heads, T, S), shifted so that
// each score is at the slot with its distance. The products with r are padded to S + 1 columns.
// Reading them from column T - 1 in rows of S begins row i i columns earlier, which is the relative
// shift. Values behind a query's own slot are meaningless.
Tensor shifted_scores(const Tensor& position, const Tensor& r) {
  const auto rows = position.size(0), steps = position.size(1), heads = position.size(2),
             slots = r.size(0);
  const auto padded = torch::constant_pad_nd(r, {0, 0, 0, 0, 0, 1});
  const auto products = torch::matmul(position.transpose(1, 2), padded.permute({1, 2, 0}));
  return products.reshape({rows, heads, steps * (slots + 1)})
      .narrow(2, steps - 1, steps * slots)
      .view({rows, heads, steps, slots});
}

// The path for devices: fused attention with the positions' scores as its bias. The bias is the
// only tensor of shape (B, heads, T, S).
Tensor attend_biased(const Tensor& content, const Tensor& position, const Tensor& kv,
    const Tensor& r, const KeyVisibility& visibility, double scale, double dropout) {
  const auto hidden = visibility.hidden(content.size(1), kv.size(1), content.device());
  const auto bias = shifted_scores(position * scale, r).masked_fill(hidden, kHidden);
  return at::scaled_dot_product_attention(content.transpose(1, 2), kv.select(2, 0).transpose(1, 2),
      kv.select(2, 1).transpose(1, 2), bias, dropout,
      /*is_causal=*/false, scale)
      .transpose(1, 2);
}

Tensor attend_whole(const Tensor& content, const Tensor& position, const Tensor& kv,
    const Tensor& r, const KeyVisibility& visibility, double scale, double dropout) {
  auto scores = torch::matmul(content.transpose(1, 2), kv.select(2, 0).permute({0, 2, 3, 1}));
  scores = (scores + shifted_scores(position, r)) * scale;
  scores = scores.masked_fill(visibility.hidden(content.size(1), kv.size(1), torch::kCPU), kHidden);
  const auto weights = dropped(scores.softmax(-1), dropout, dropout > 0);
  return torch::matmul(weights, kv.select(2, 1).transpose(1, 2)).transpose(1, 2);
}

}  // namespace

torch::Tensor KeyVisibility::hidden(
    std::int64_t queries, std::int64_t slots, torch::Device device) const {
  const auto numbers = torch::TensorOptions(torch::kInt64).device(device);
  const auto own = torch::arange(slots - queries, slots, numbers).unsqueeze(1);  // (T, 1)
  const auto slot = torch::arange(slots, numbers).unsqueeze(0);                  // (1, S)
  auto hidden = slot > own;
  if (before >= 0) hidden = hidden | (slot < own - before);
  hidden = hidden.unsqueeze(0);
  if (first.defined())  // (B, T, S)
    hidden = hidden | (slot < upload(first, device).unsqueeze(1)).unsqueeze(1);
  return hidden.unsqueeze(1);
}

bool parse_same_length(const std::string& text) {
  if (text != "on" && text != "off")
    core::bad_config("same-length: takes on or off, not '{}'", text);
  return text == "on";
}

torch::Tensor distance_vectors(std::int64_t n, std::int64_t clamp, std::int64_t d) {
  auto distance = torch::arange(n - 1, -1, -1, torch::kFloat64);
  if (clamp > 0) distance.clamp_max_(static_cast<double>(clamp));
  const auto frequency = torch::arange(d / 2, torch::kFloat64)
                             .mul(-2 * std::log(10000.0) / static_cast<double>(d))
                             .exp();
  const auto angle = distance.unsqueeze(1) * frequency;
  const auto table = torch::cat({angle.sin(), angle.cos()}, 1);
  return d % 2 == 0 ? table : torch::constant_pad_nd(table, {0, 1});
}

torch::Tensor relative_attend(const torch::Tensor& content, const torch::Tensor& position,
    const torch::Tensor& kv, const torch::Tensor& r, const KeyVisibility& visibility,
    double dropout) {
  const double scale = 1 / std::sqrt(static_cast<double>(content.size(3)));
  const bool fits = in_host_memory(content) && content.scalar_type() == torch::kFloat32 &&
                    kv.scalar_type() == torch::kFloat32;
  if (fits)
    return relative_attend_blocks(content, position, kv, r, visibility.first, visibility.before,
        scale, dropout, dropout > 0 ? draw_seed() : 0);
  if (in_host_memory(content))
    return attend_whole(content, position, kv, r, visibility, scale, dropout);
  return attend_biased(content, position, kv, r, visibility, scale, dropout);
}

PositionBiases::PositionBiases(std::int64_t heads, std::int64_t width) {
  content = register_parameter("content", blank({heads, width}));
  position = register_parameter("position", blank({heads, width}));
}

RelativeAttention::RelativeAttention(std::int64_t d_model, std::int64_t heads, double dropout)
    : heads_(heads), dropout_(dropout) {
  c_attn_ = register_module("c_attn", std::make_shared<Linear>(d_model, 3 * d_model, false));
  c_position_ = register_module("c_position", std::make_shared<Linear>(d_model, d_model, false));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_model, d_model, false));
}

torch::Tensor RelativeAttention::keys_values(const torch::Tensor& x) const {
  const auto d = x.size(2);
  return torch::linear(x, c_attn_->weight.narrow(0, d, 2 * d));
}

torch::Tensor RelativeAttention::positions(const torch::Tensor& distances) const {
  const auto d = distances.size(1);
  return c_position_->forward(distances).view({distances.size(0), heads_, d / heads_});
}

torch::Tensor RelativeAttention::forward(const torch::Tensor& x, const torch::Tensor& keys_values,
    const torch::Tensor& positions, const PositionBiases& biases, const KeyVisibility& visibility) {
  const auto rows = x.size(0), queries = x.size(1), d = x.size(2), width = d / heads_;
  const auto q =
      torch::linear(x, c_attn_->weight.narrow(0, 0, d)).view({rows, queries, heads_, width});
  const auto kv = keys_values.view({rows, keys_values.size(1), 2, heads_, width});
  const auto out = relative_attend(q + biases.content, q + biases.position, kv, positions,
      visibility, is_training() ? dropout_ : 0.0);
  return c_proj_->forward(out.reshape({rows, queries, d}));
}

}  // namespace nn
