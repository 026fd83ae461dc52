// Mamba (Gu and Dao 2023, "Linear-Time Sequence Modeling with Selective State Spaces", arXiv
// 2312.00752): a state of n numbers for each channel, whose decay and input depend on the token.
//
//   x, z = c_in(input);  x = swish(convolution(x));  low, B, C = c_select(x)
//   dt = softplus(dt_up(low)), for each channel;  A = -exp(a_log), (width, n)
//   h_t = exp(dt_t A) h_{t-1} + dt_t x_t B_t,  y_t = h_t C_t + skip x_t      (selective_scan)
//   output = c_proj(y swish(z))

#include "nn/arch/gla.h"
#include "nn/ops/selective_scan.h"

namespace nn {
namespace {

class MambaMixer : public Mixer, public OwnFirstValues {
 public:
  explicit MambaMixer(const ModelOptions& options)
      : Mixer(options.shape), n_(options.mixers.state), width_(options.mamba2.width(d_)),
        rank_((d_ + 15) / 16) {
    heads_ = width_, d_state_ = {n_, 1};  // each channel has a state
    c_in_ = add_matrix("c_in", d_, 2 * width_, false);
    convolution_ = add_convolution("convolution", width_, options.gla.convolution, true);
    carried_.fixed += matrices();
    c_select_ = add_matrix("c_select", width_, rank_ + 2 * n_, false);
    dt_up_ = add_matrix("dt_up", rank_, width_, true);
    a_log_ = register_parameter("a_log", blank({width_ * n_}));
    skip_ = register_parameter("skip", blank({width_}));
    c_proj_ = add_matrix("c_proj", width_, d_, false);
  }

  // As published: decays of 1 to n at the rate dt, which is from 0.001 to 0.1.
  void first_values() override {
    a_log_.copy_(
        torch::arange(1, n_ + 1, a_log_.options().requires_grad(false)).log().repeat({width_}));
    auto unused = torch::empty({1}, a_log_.options().requires_grad(false));
    first_decays(unused, dt_up_->bias);
    skip_.fill_(1);
  }

  Tensor forward(const Tensor& input, const MixerCall& call, const std::string& name) override {
    const auto parts = c_in_->forward(input).split(width_, 2);
    const auto x = call.convolved(parts[0], *convolution_, name);
    const auto chosen = c_select_->forward(x).split_with_sizes({rank_, n_, n_}, 2);
    auto dt = torch::softplus(dt_up_->forward(chosen[0]));
    if (call.real.defined()) dt = dt * call.real;
    const auto out = selective_scan(x, dt, -a_log_.exp().view({width_, n_}), chosen[1], chosen[2],
        first_state(x, call, name).squeeze(3));
    call.carry(name + ".state", out.state.unsqueeze(3));
    const auto y = (out.y + x * skip_).to(input.scalar_type());
    return c_proj_->forward(y * torch::silu(parts[1]));
  }

 private:
  std::int64_t n_, width_, rank_;
  std::shared_ptr<Linear> c_in_, c_select_, dt_up_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;
  Tensor a_log_, skip_;  // (width n), (width)
};

}  // namespace

const MixerFacts mamba_mixer{.name = "mamba",
    .make = make_mixer<MambaMixer>,
    .second = MixerFacts::Second::none,
    .norm = NormKind::rms};

}  // namespace nn
