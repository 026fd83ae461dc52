// Softmax attention over the newest tokens with rotary positions, as a mixer of constant state:
//
//   q, k, v = c_attn(x);  o_t = sum_s softmax_s(q_t k_s / sqrt(d_head)) v_s,  t - window < s <= t
//   output = c_proj(o)
//
// The State holds the keys, without rotation, and values of the last window tokens.

#include <ATen/ops/scaled_dot_product_attention.h>

#include "nn/arch/mixer.h"

namespace nn {
namespace {

class WindowMixer : public Mixer {
 public:
  explicit WindowMixer(const ModelOptions& options)
      : Mixer(options.shape), window_(options.mixers.window) {
    if (d_ % (2 * heads_) != 0)
      core::bad_config("heads: twice {} does not divide d-model {}", heads_, d_);
    c_attn_ = add_matrix("c_attn", d_, 3 * d_, options.transformer.bias);
    c_proj_ = add_matrix("c_proj", d_, d_, options.transformer.bias);
    carried_.fixed = window_ * (2 * d_ + 1);
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    // Without a state there is nothing before the call.
    const auto T = x.size(1), reach = call.state != nullptr ? window_ : std::min(T, window_);
    const auto part = std::min(T, reach), parts = (T + part - 1) / part;
    const auto made = c_attn_->forward(x).split_with_sizes({d_, 2 * d_}, 2);
    const auto real = call.real.defined() ? call.real : torch::ones({x.size(0), T, 1}, x.options());
    // Keys, values and 1 for a token: those of the last window and of this call.
    const auto all = call.after_past(
        torch::cat({made[1], real.expand({x.size(0), T, 1})}, 2), reach, name + ".state");
    const auto missing = parts * part - T;
    const auto padded = [&](const Tensor& of) {
      return missing > 0 ? at::constant_pad_nd(of, {0, 0, 0, missing}) : of;
    };
    // A part of the queries reads the window before it and itself.
    const auto places = torch::arange(parts, x.options().dtype(torch::kInt64)).unsqueeze(1) * part +
                        torch::arange(reach + part, x.options().dtype(torch::kInt64));
    const auto of_parts = [&](const Tensor& of) {  // (B, places, w) -> (B parts, window + part, w)
      return of.index_select(1, places.flatten()).view({-1, reach + part, of.size(2)});
    };
    const auto read = of_parts(padded(all)).split_with_sizes({d_, d_, 1}, 2);
    const auto options = x.options().requires_grad(false);
    const Rotation by(torch::arange(reach + part).unsqueeze(0), d_ / heads_, {}, options);
    const auto heads = [&](const Tensor& of) { return by_head(of).transpose(1, 2); };
    const auto queries = padded(made[0]).reshape({x.size(0) * parts, part, d_});
    const auto q =
        by.apply(heads(at::constant_pad_nd(queries, {0, 0, reach, 0}))).narrow(2, reach, part);
    const auto place = torch::arange(reach + part, options.dtype(torch::kInt64));
    const auto after = place - torch::arange(part, place.options()).unsqueeze(1);  // from s to t
    const auto seen = ((after >= 1) & (after <= reach)) & (read[2].transpose(1, 2) > 0);
    const auto o = at::scaled_dot_product_attention(
        q, by.apply(heads(read[0])), heads(read[1]), (seen | (after == reach)).unsqueeze(1));
    return c_proj_->forward(
        o.transpose(1, 2).reshape({x.size(0), parts * part, d_}).narrow(1, 0, T));
  }

 private:
  std::int64_t window_;
  std::shared_ptr<Linear> c_attn_, c_proj_;
};

}  // namespace

const MixerFacts window_mixer{"window", make_mixer<WindowMixer>};

}  // namespace nn
