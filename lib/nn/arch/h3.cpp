// H3 (Fu et al. 2023, "Hungry Hungry Hippos", arXiv 2212.14052) with heads of one channel.
//
//   q, k, v = c_in(x);  output = c_proj(q . diagonal(shift(k) . v))
//
// The shift state space keeps the last inputs and reads them by learned weights, which is a causal
// convolution with as many taps as it has numbers; its skip is added to the last tap. The other one
// is the DiagonalStateSpace. Heads of more channels, which the paper offers too, are left out.

#include "nn/arch/s4d.h"

namespace nn {
namespace {

class H3Mixer : public Mixer, public OwnFirstValues {
 public:
  explicit H3Mixer(const ModelOptions& options)
      : Mixer(options.shape), taps_(options.gla.convolution) {
    c_in_ = add_matrix("c_in", d_, 3 * d_, true);
    shift_ = add_convolution("shift", d_, taps_, false, /*swish=*/false);
    carried_.fixed += d_ * options.mixers.state;
    space_ =
        register_module("space", std::make_shared<DiagonalStateSpace>(d_, options.mixers.state));
    c_proj_ = add_matrix("c_proj", d_, d_, true);
  }

  void first_values() override {
    if (taps_ == 1) return;
    shift_->first_values();
    auto taps = shift_->parameters()[0];
    taps.select(1, taps_ - 1).add_(torch::randn_like(taps.select(1, 0)));  // the skip
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto qkv = c_in_->forward(x).split(d_, 2);
    const auto k = call.convolved(qkv[1], *shift_, name);
    const auto y = space_->forward(k * qkv[2], call, name + ".state");
    return c_proj_->forward(qkv[0] * y.to(x.scalar_type()));
  }

 private:
  std::int64_t taps_;
  std::shared_ptr<Linear> c_in_, c_proj_;
  std::shared_ptr<ShortConvolution> shift_;
  std::shared_ptr<DiagonalStateSpace> space_;
};

}  // namespace

const MixerFacts h3_mixer{"h3", make_mixer<H3Mixer>};

}  // namespace nn
