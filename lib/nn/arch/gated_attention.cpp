// Softmax attention over all earlier tokens, with rotary positions, grouped keys and a gate (Qwen
// team 2025, "Gated Attention for Large Language Models", arXiv 2505.06708, the gate of position
// G1, for each number):
//
//   q, gate = c_attn(x), q first in each head;  k, v = c_attn(x)
//   o_t = sum_s softmax_s(turned(norm(q_t)) turned(norm(k_s)) / sqrt(d_head)) v_s,  s <= t
//   output = attn_proj(sigmoid(gate) o), with norms of the stack's kind for each head
//
// The State holds NAME.read (B, S, 2 d_key + 1): keys without rotation, values, and 1 for a token,
// the newest last.

#include <ATen/ops/scaled_dot_product_attention.h>

#include "nn/arch/mixer.h"

namespace nn {
namespace {

class GatedAttention : public Mixer {
 public:
  explicit GatedAttention(const ModelOptions& options)
      : Mixer(options.shape), shape_(head_shape(options.shape, options.transformer)),
        rope_(options.transformer.rope) {
    auto block = options.transformer;
    block.positions = "rope";
    check_heads(options.shape, block);
    check_positions(options.shape, block);
    c_attn_ = add_matrix("c_attn", d_, 2 * shape_.d_query() + 2 * shape_.d_key(), block.bias);
    for (auto [name, made] : {std::pair("q_norm", &q_norm_), std::pair("k_norm", &k_norm_)})
      *made = register_module(name, std::make_shared<LayerNorm>(shape_.width, block.norm_epsilon,
                                        false, parse_norm_kind(block.norm_kind)));
    attn_proj_ = add_matrix("attn_proj", shape_.d_query(), d_, block.bias);
    carried_.per_token = 2 * shape_.d_key() + 1;
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto T = x.size(1), width = shape_.width, d_key = shape_.d_key();
    const auto by_width = [&](const Tensor& of, std::int64_t w) {
      return of.unflatten(2, {-1, w}).transpose(1, 2);  // (B, heads, T, w)
    };
    const auto parts =
        c_attn_->forward(x).split_with_sizes({2 * shape_.d_query(), d_key, d_key}, 2);
    const auto q_gate = by_width(parts[0], 2 * width).chunk(2, 3);
    const auto k = k_norm_->forward(by_width(parts[1], width)).transpose(1, 2).flatten(2);
    const auto real = call.real.defined() ? call.real : torch::ones({x.size(0), T, 1}, x.options());
    const auto read = call.after_all(torch::cat({k, parts[2], real}, 2), name + kReadByAttention);
    const auto slots = read.size(1);
    const auto kv = read.split_with_sizes({d_key, d_key, 1}, 2);
    const auto options = x.options().requires_grad(false);
    const auto place = torch::arange(slots, torch::kInt64).unsqueeze(0);
    const auto group = shape_.heads / shape_.kv_heads;
    const auto keys = Rotation(place, shape_.rotated, rope_, options).apply(by_width(kv[0], width));
    const auto q = Rotation(place.narrow(1, slots - T, T), shape_.rotated, rope_, options)
                       .apply(q_norm_->forward(q_gate[0]));
    std::optional<Tensor> seen;  // a padded query sees itself
    if (call.real.defined() || slots > T) {
      const auto at = torch::arange(slots, options.dtype(torch::kInt64));
      const auto after = at.narrow(0, slots - T, T).unsqueeze(1) - at;  // from s to t
      seen = (((after >= 0) & (kv[2].transpose(1, 2) > 0)) | (after == 0)).unsqueeze(1);
    }
    const auto o = at::scaled_dot_product_attention(q, keys.repeat_interleave(group, 1),
        by_width(kv[1], width).repeat_interleave(group, 1), seen, 0, !seen && T > 1);
    return attn_proj_->forward((o * torch::sigmoid(q_gate[1])).transpose(1, 2).flatten(2));
  }

 private:
  HeadShape shape_;
  RopeOptions rope_;
  std::shared_ptr<Linear> c_attn_, attn_proj_;
  std::shared_ptr<LayerNorm> q_norm_, k_norm_;
};

}  // namespace

const MixerFacts gated_attention_mixer{"gated-attention", make_mixer<GatedAttention>};

}  // namespace nn
