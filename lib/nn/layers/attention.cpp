#include "nn/layers/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include "nn/base/cuda.h"
#include "nn/base/upload.h"
#include "nn/ops/tiled_attend.h"

namespace nn {
namespace {

// Number of queries from which transposing keys for tiles is faster if no gradient is needed.
constexpr std::int64_t kWorthTiles = 16;

// Returns (1, heads, 1, 1) float64 on the options' device, or undefined without ALiBi.
torch::Tensor slopes_of(
    Positions positions, std::int64_t heads, const torch::TensorOptions& options) {
  if (positions != Positions::alibi) return {};
  return upload(alibi_slopes(heads).view({1, heads, 1, 1}), options.device());
}

// Reshapes (B, heads, 1, ...), one query per head, to (B, kv_heads, group, ...). Queries that share
// keys become rows of one product, so that no key is copied per query.
torch::Tensor by_keys(const torch::Tensor& x, const HeadShape& heads) {
  return x.reshape({x.size(0), heads.kv_heads, heads.heads / heads.kv_heads, x.size(3)});
}

Visibility by_keys(const Visibility& visibility, const HeadShape& heads) {
  Visibility grouped;  // the one query is the newest token: no causal mask
  grouped.mask = visibility.mask;
  if (visibility.mask.defined() && visibility.mask.size(1) > 1)
    grouped.mask = by_keys(visibility.mask, heads);
  return grouped;
}

/// Mask (window, 2 window): what the queries of a block see of the previous block and of their own.
Tensor two_blocks_mask(std::int64_t window, const torch::TensorOptions& options) {
  const auto places = torch::TensorOptions(torch::kInt64).device(options.device());
  const auto query = torch::arange(window, 2 * window, places).unsqueeze(1),
             distance = query - torch::arange(2 * window, places).unsqueeze(0);
  return torch::zeros({window, 2 * window}, options.requires_grad(false))
      .masked_fill_((distance < 0) | (distance >= window), kHidden);
}

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

Visibility make_visibility(const KvCache& cache, Positions positions, std::int64_t heads,
    std::int64_t window, const torch::TensorOptions& options) {
  Visibility visibility;
  const auto slots = cache.slots(), steps = cache.before().size(1), earlier = slots - steps;
  const bool narrow = window > 0 && window < slots;
  visibility.causal = cache.all_valid() && earlier == 0;
  const bool sees_all = cache.all_valid() && steps == 1;
  const bool plain = positions != Positions::alibi && !narrow;
  if (plain && (visibility.causal || sees_all)) return visibility;

  const auto device = options.device();
  const auto numbers = torch::TensorOptions(torch::kInt64).device(device);
  const auto slot = torch::arange(slots, numbers).unsqueeze(0);            // (1, S)
  const auto query = torch::arange(earlier, slots, numbers).unsqueeze(1);  // (T, 1)
  auto visible = slot.le(query).unsqueeze(0);                              // (1, T, S)
  if (!cache.all_valid())
    visible = (visible & upload(cache.valid(), device).unsqueeze(1)) | slot.eq(query);
  if (narrow && cache.all_valid()) visible.logical_and_(slot.gt(query - window));
  torch::Tensor distance;  // (B or 1, T, S), eight bytes each; only if slots do not give it
  if (positions == Positions::alibi || (narrow && !cache.all_valid())) {
    distance =
        upload(cache.before(), device).unsqueeze(2) - upload(cache.position(), device).unsqueeze(1);
    if (cache.all_valid()) distance = distance.narrow(0, 0, 1);
  }
  if (narrow && !cache.all_valid()) visible = visible & (distance < window);
  visibility.mask =
      visibility_mask(visible, slopes_of(positions, heads, options), distance, options);
  visibility.causal = false;
  return visibility;
}

torch::Tensor visibility_mask(const torch::Tensor& visible, const torch::Tensor& slopes,
    const torch::Tensor& distance, const torch::TensorOptions& options) {
  const auto hidden = visible.logical_not().unsqueeze(1);  // (B or 1, 1, T, S)
  const auto mask = slopes.defined() ? (-slopes * distance.unsqueeze(1)).to(options.dtype())
                                     : torch::zeros(hidden.sizes(), options);
  return mask.masked_fill(hidden, kHidden);
}

Visibility make_visibility(const KvRing& ring, Positions positions, std::int64_t heads,
    std::int64_t window, const torch::TensorOptions& options) {
  const auto& place = ring.place();
  const auto held = ring.held().unsqueeze(1);                // (B, 1, C)
  const auto distance = place.position.unsqueeze(2) - held;  // (B, T, C)
  auto visible = (held >= place.first.unsqueeze(2)) & (distance >= 0);
  if (window > 0) visible = visible & (distance < window);
  Visibility visibility;
  visibility.mask =
      visibility_mask(visible, slopes_of(positions, heads, options), distance, options);
  return visibility;
}

double Scores::scale_of(std::int64_t width) const {
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(width));
}

torch::Tensor Scores::operator()(const torch::Tensor& q, const torch::Tensor& k) const {
  const auto scores = torch::matmul(q * scale_of(q.size(-1)), k.transpose(-2, -1));
  return cap > 0 ? cap * (scores / cap).tanh() : scores;
}

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
    const Visibility& visibility, double dropout, const Scores& by) {
  const bool learns = torch::GradMode::is_enabled() &&
                      (q.requires_grad() || k.requires_grad() || v.requires_grad());
  const bool tiles = learns || dropout > 0 || q.size(2) >= kWorthTiles;
  if (by.cap == 0 && tiles && tiled_attend_fits(q, k, v, visibility.mask)) {
    return tiled_attend(q, k, v, visibility.mask,
        {by.scale_of(q.size(-1)), visibility.causal, dropout, dropout > 0 ? draw_seed() : 0});
  }
  // Torch's fused attention on the CPU has no dropout.
  if (by.cap == 0 && (dropout == 0 || !in_host_memory(q))) {
    std::optional<torch::Tensor> mask;
    if (visibility.mask.defined()) mask = visibility.mask;
    std::optional<double> scale;
    if (by.scale > 0) scale = by.scale;
    return at::scaled_dot_product_attention(
        q, k, v, mask, dropout, visibility.causal && q.size(2) > 1, scale);
  }
  auto scores = by(q, k);
  if (visibility.mask.defined()) {
    scores = scores + visibility.mask;
  } else if (visibility.causal) {
    const auto seen = torch::ones({q.size(2), k.size(2)}, q.options().dtype(torch::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), kHidden);
  }
  return torch::matmul(torch::dropout(scores.softmax(-1), dropout, true), v);
}

Attention::Attention(const ShapeOptions& shape, const TransformerOptions& options)
    : heads_(head_shape(shape, options)), scores_{options.attention_scale,
                                              options.attention_softcap},
      norm_of_heads_(options.qk_norm == "head"), dropout_(shape.attention_dropout) {
  c_attn_ = register_module(
      "c_attn", std::make_shared<Linear>(shape.d_model, heads_.d_all(), options.has_bias("qkv")));
  c_proj_ = register_module("c_proj",
      std::make_shared<Linear>(heads_.d_query(), shape.d_model, options.has_bias("output")));
  if (options.qk_norm == "none") return;
  const auto norm = [&](const char* name, std::int64_t d) {
    return register_module(
        name, std::make_shared<LayerNorm>(norm_of_heads_ ? heads_.width : d, options.norm_epsilon,
                  options.has_bias("norm"), parse_norm_kind(options.norm_kind)));
  };
  q_norm_ = norm("q_norm", heads_.d_query());
  k_norm_ = norm("k_norm", heads_.d_key());
}

torch::Tensor Attention::split(const torch::Tensor& y, const LayerNorm* norm) const {
  const bool of_all = norm != nullptr && !norm_of_heads_;
  const auto heads =
      (of_all ? norm->forward(y) : y).unflatten(2, {-1, heads_.width}).transpose(1, 2);
  return norm != nullptr && norm_of_heads_ ? norm->forward(heads) : heads;
}

torch::Tensor Attention::forward(const torch::Tensor& x, const Visibility& visibility,
    KeyValues& cache, const std::string& name) {
  const auto parts =
      c_attn_->forward(x).split_with_sizes({heads_.d_query(), heads_.d_key(), heads_.d_key()}, 2);
  auto q = split(parts[0], q_norm_.get()), k = split(parts[1], k_norm_.get());
  if (visibility.rotation) {
    q = visibility.rotation->apply(q);
    k = visibility.rotation->apply(k);
  }
  k = cache.extend(name + ".k", k);
  auto v = cache.extend(name + ".v", split(parts[2], nullptr));
  const auto group = heads_.heads / heads_.kv_heads;
  const bool decodes = q.size(2) == 1 && !is_training() && visibility.watch == nullptr;
  if (group > 1 && decodes) {
    const auto out = attend(by_keys(q, heads_), k, v, by_keys(visibility, heads_), 0, scores_);
    return c_proj_->forward(out.reshape({x.size(0), 1, heads_.d_query()}));
  }
  if (group > 1) {
    k = k.repeat_interleave(group, 1);
    v = v.repeat_interleave(group, 1);
  }
  if (visibility.watch != nullptr)
    (*visibility.watch)(last_weights(scores_(q.narrow(2, q.size(2) - 1, 1), k), visibility.mask));
  const auto out = attend(q, k, v, visibility, is_training() ? dropout_ : 0.0, scores_);
  return c_proj_->forward(out.transpose(1, 2).flatten(2));
}

Tensor attend_band(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t window,
    double dropout, const Scores& scores) {
  const auto steps = q.size(2), first = std::min(window, steps);
  Visibility triangle;
  triangle.causal = true;
  const auto begin = attend(q.narrow(2, 0, first), k.narrow(2, 0, first), v.narrow(2, 0, first),
      triangle, dropout, scores);
  if (steps <= window) return begin;

  const auto rows = q.size(0), heads = q.size(1), blocks = (steps + window - 1) / window,
             missing = blocks * window - steps;
  const auto cut = [&](const Tensor& x) {  // returns (B, heads, blocks, window, width)
    const auto whole = missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, missing}) : x;
    return whole.reshape({rows, heads, blocks, window, x.size(3)});
  };
  const auto later = [&](const Tensor& x) { return x.narrow(2, 1, blocks - 1); };
  const auto pairs_of_blocks = [&](const Tensor& x) {
    const auto all = cut(x);
    return torch::cat({all.narrow(2, 0, blocks - 1), later(all)}, 3).flatten(1, 2);
  };
  Visibility near;
  near.mask = two_blocks_mask(window, q.options());
  const auto rest = attend(
      later(cut(q)).flatten(1, 2), pairs_of_blocks(k), pairs_of_blocks(v), near, dropout, scores)
                        .reshape({rows, heads, (blocks - 1) * window, v.size(3)})
                        .narrow(2, 0, steps - window);
  return torch::cat({begin, rest}, 2);
}

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
