// Kimi Delta Attention (Kimi Team 2025, "Kimi Linear", arXiv 2510.26692): the gated delta rule with
// a decay for each channel of the keys.
//
//   q, k, v = swish(convolution(c_in(x))); |q| = d_key^(-1/2), |k| = 1 in each head
//   log decay = -exp(a_log) softplus(lora_decay(x) + a_bias), for each channel; a_log for each head
//   beta = sigmoid(gates(x)), for each head
//   S_t = (I - beta_t k_t k_t^T) diag(decay_t) S_{t-1} + beta_t k_t v_t^T,  o_t = S_t^T q_t
//   output = c_proj(norm(o) sigmoid(lora_gate(x))), an RMS norm for each head
//
// lora_m(x) = m_up(m_down(x)), of a head's width.

#include "nn/arch/gla.h"
#include "nn/ops/rank_one_scan.h"

namespace nn {
namespace {

class KdaMixer : public Mixer, public OwnFirstValues {
 public:
  explicit KdaMixer(const ModelOptions& options)
      : Mixer(options.shape, options.shape.d_model / options.shape.heads) {
    if (d_ % heads_ != 0) core::bad_config("heads: {} does not divide d-model {}", heads_, d_);
    const auto wide = d_ / heads_;
    c_in_ = add_matrix("c_in", d_, 3 * d_, false);
    convolution_ = add_convolution("convolution", 3 * d_, options.gla.convolution);
    carried_.fixed += matrices();
    decay_down_ = add_matrix("decay_down", d_, wide, false);
    decay_up_ = add_matrix("decay_up", wide, d_, false);
    gates_ = add_matrix("gates", d_, heads_, false);
    gate_down_ = add_matrix("gate_down", d_, wide, false);
    gate_up_ = add_matrix("gate_up", wide, d_, true);
    a_log_ = register_parameter("a_log", blank({heads_}));
    a_bias_ = register_parameter("a_bias", blank({d_}));
    norm_ = register_module("norm",
        std::make_shared<LayerNorm>(wide, options.transformer.norm_epsilon, false, NormKind::rms));
    c_proj_ = add_matrix("c_proj", d_, d_, false);
  }

  void first_values() override { first_decays(a_log_, a_bias_); }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto mixed = call.convolved(c_in_->forward(x), *convolution_, name);
    const auto qkv = mixed.split(d_, 2);
    const auto unit = [&](const Tensor& of) { return of_length_one(by_head(of)); };
    const auto k = unit(qkv[1]);
    auto beta = torch::sigmoid(gates_->forward(x)).unsqueeze(3);
    auto fading = -a_log_.exp().repeat_interleave(d_ / heads_) *
                  torch::softplus(decay_up_->forward(decay_down_->forward(x)) + a_bias_);
    if (call.real.defined()) {
      beta = beta * call.real.unsqueeze(3);
      fading = fading * call.real;
    }
    const auto log_decay = by_head(fading), written = beta * k;
    const auto out = rank_one_scan(
        {unit(qkv[0]) / std::sqrt(static_cast<double>(d_ / heads_)), written, k * log_decay.exp(),
            -written, log_decay, by_head(qkv[2]), first_state(x, call, name), true});
    call.carry(name + ".state", out.state);
    const auto gate = torch::sigmoid(gate_up_->forward(gate_down_->forward(x)));
    const auto o = norm_->forward(out.o.to(x.scalar_type()));
    return c_proj_->forward(o.reshape(x.sizes()) * gate);
  }

 private:
  std::shared_ptr<Linear> c_in_, decay_down_, decay_up_, gates_, gate_down_, gate_up_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;
  Tensor a_log_, a_bias_;  // (heads), (d)
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

const MixerFacts kda_mixer{"kda", make_mixer<KdaMixer>};

}  // namespace nn
