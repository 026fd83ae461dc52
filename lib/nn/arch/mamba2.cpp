// Mamba-2 (Dao and Gu 2024, "Transformers are SSMs", arXiv 2405.21060, section 7), with one group:
// all heads share B and C, the keys and queries.
//
//   z, x, B, C, dt = c_in(input);  x, B, C = swish(convolution(x, B, C))
//   dt = softplus(dt + a_bias) and a decay exp(-exp(a_log) dt), for each head
//   S_t = decay_t S_{t-1} + dt_t B_t x_t^T,  y_t = S_t^T C_t + skip x_t      (gla_scan)
//   output = c_proj(norm(y swish(z))), an RMS norm over all heads

#include "nn/arch/gla.h"

namespace nn {
namespace {

class Mamba2Mixer : public Mixer, public OwnFirstValues {
 public:
  explicit Mamba2Mixer(const ModelOptions& options)
      : Mixer(options.shape, options.mamba2.state, options.mamba2.width(options.shape.d_model)),
        state_(options.mamba2.state), width_(options.mamba2.width(d_)) {
    if (width_ % heads_ != 0)
      core::bad_config("heads: {} does not divide {}, d-model times expand", heads_, width_);
    c_in_ = add_matrix("c_in", d_, 2 * width_ + 2 * state_ + heads_, false);
    convolution_ =
        add_convolution("convolution", width_ + 2 * state_, options.gla.convolution, true);
    carried_.fixed += matrices();
    a_log_ = register_parameter("a_log", blank({heads_}));
    a_bias_ = register_parameter("a_bias", blank({heads_}));
    skip_ = register_parameter("skip", blank({heads_}));
    norm_ = register_module("norm", std::make_shared<LayerNorm>(width_,
                                        options.transformer.norm_epsilon, false, NormKind::rms));
    c_proj_ = add_matrix("c_proj", width_, d_, false);
  }

  void first_values() override { first_decays(a_log_, a_bias_); }

  Tensor forward(const Tensor& input, const MixerCall& call, const std::string& name) override {
    const auto parts =
        c_in_->forward(input).split_with_sizes({width_, width_ + 2 * state_, heads_}, 2);
    const auto mixed = call.convolved(parts[1], *convolution_, name);
    const auto xbc = mixed.split_with_sizes({width_, state_, state_}, 2);
    const auto x = by_head(xbc[0]);
    auto rate = torch::softplus(parts[2] + a_bias_);
    if (call.real.defined()) rate = rate * call.real;
    const auto out =
        gla_scan({xbc[2].unsqueeze(2), xbc[1].unsqueeze(2), (-a_log_.exp() * rate).unsqueeze(3),
            x * rate.unsqueeze(3), first_state(input, call, name)});
    call.carry(name + ".state", out.state);
    const auto y = (out.o + x * skip_.unsqueeze(1)).flatten(2).to(input.scalar_type());
    return c_proj_->forward(norm_->forward(y * torch::silu(parts[0])));
  }

 private:
  std::int64_t state_, width_;
  std::shared_ptr<Linear> c_in_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;
  Tensor a_log_, a_bias_, skip_;  // (heads)
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

const MixerFacts mamba2_mixer{.name = "mamba2",
    .make = make_mixer<Mamba2Mixer>,
    .second = MixerFacts::Second::none,
    .norm = NormKind::rms};

}  // namespace nn
