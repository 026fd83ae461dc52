// Hyena of order 2 (Poli et al. 2023, "Hyena Hierarchy", arXiv 2302.10866).
//
//   q, k, v = convolution(c_in(x)), short;  z = k . v
//   output = c_proj(q . (sum over j < length of filter_j z_{t-j} + skip z_t))
//
// filter = decay . filter_out(sine(filter_2(sine(filter_1(sine(filter_in(place)))))), where
// sine(x) = sin(frequency x), place_j = (s, cos(f w), -sin(f w)) with s from 0 to 1, w = 2 pi j /
// length and 16 frequencies f from 0.0001 to 15, and decay_j = exp(-s ln(100) / h) with 1 / h from
// 1 / 1.5 to 1 / 0.3 over the channels. Beyond its length the filter is 0.

#include <mutex>

#include "nn/arch/mixer.h"
#include "nn/base/recomputing.h"
#include "nn/ops/host_loops.h"
#include "nn/ops/long_convolution.h"

namespace nn {
namespace {

class HyenaMixer : public Mixer, public OwnFirstValues {
 public:
  explicit HyenaMixer(const ModelOptions& options)
      : Mixer(options.shape), length_(options.mixers.filter) {
    c_in_ = add_matrix("c_in", d_, 3 * d_, true);
    convolution_ =
        add_convolution("convolution", 3 * d_, options.gla.convolution, true, /*swish=*/false);
    carried_.fixed += d_ * (length_ - 1);
    filter_.push_back(add_matrix("filter_in", 2 * kBands + 1, kInner, true));
    for (const char* const name : {"filter_1", "filter_2"})
      filter_.push_back(add_matrix(name, kInner, kInner, true));
    filter_.push_back(add_matrix("filter_out", kInner, d_, false));
    frequency_ = register_parameter("frequency", blank({kInner}));
    skip_ = register_parameter("skip", blank({d_}));
    c_proj_ = add_matrix("c_proj", d_, d_, true);
  }

  void first_values() override {
    for (const auto& map : filter_) {
      const auto bound = 1 / std::sqrt(static_cast<double>(map->weight.size(1)));
      for (auto& weight : map->parameters()) weight.uniform_(-bound, bound);
    }
    frequency_.fill_(14);
    skip_.normal_();
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto qkv = call.convolved(c_in_->forward(x), *convolution_, name).split(d_, 2);
    const auto z = (qkv[1] * qkv[2]).to(accumulation_type(x));
    const auto all = call.after_past(z, call.state != nullptr ? length_ - 1 : 0, name + ".state");
    const auto y =
        long_convolution(all, filter(accumulation_type(x), all.size(1)), x.size(1)) + skip_ * z;
    return c_proj_->forward(qkv[0] * y.to(x.scalar_type()));
  }

 private:
  static constexpr std::int64_t kBands = 16, kInner = 64;

  /// The filter (d, length); with gradients or on a device its first `most` places, made anew. On
  /// the CPU without gradients it is made again only if its weights have changed; on a device the
  /// comparison would wait for it.
  Tensor filter(torch::ScalarType type, std::int64_t most) {
    if (torch::GradMode::is_enabled() || !frequency_.is_cpu()) return make_filter(most).to(type);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Tensor> all = {frequency_};
    for (const auto& map : filter_)
      for (const auto& weight : map->parameters()) all.push_back(weight.flatten());
    const auto weights = torch::cat(all);
    if (!made_.defined() || !made_.is_cpu() || made_from_.dtype() != weights.dtype() ||
        !torch::equal(made_from_, weights)) {
      made_from_ = weights;
      made_ = make_filter(length_);
    }
    return made_.to(type);
  }

  Tensor make_filter(std::int64_t most) const {
    const ExactProducts exact_products;
    const auto type = accumulation_type(frequency_);
    const auto options = frequency_.options().dtype(type).requires_grad(false);
    const auto map = [&](const Linear& by, const Tensor& x) {
      return torch::linear(x, by.weight.to(type), by.bias.defined() ? by.bias.to(type) : by.bias);
    };
    const auto j = torch::arange(std::min(most, length_), options).unsqueeze(1);
    const auto place = j / static_cast<double>(std::max<std::int64_t>(1, length_ - 1));
    const auto angle = 2 * M_PI / static_cast<double>(length_) * j *
                       at::linspace(1e-4, kBands - 1, kBands, options);
    auto x = torch::cat({place, angle.cos(), -angle.sin()}, 1);
    for (std::size_t i = 0; i + 1 < filter_.size(); ++i)
      x = (frequency_.to(type) * map(*filter_[i], x)).sin();
    const auto fade = at::linspace(std::log(100) / 1.5, std::log(100) / 0.3, d_, options);
    return (map(*filter_.back(), x) * (-place * fade).exp()).t();
  }

  std::int64_t length_;
  std::shared_ptr<Linear> c_in_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;
  std::vector<std::shared_ptr<Linear>> filter_;  // from a place to its values
  Tensor frequency_, skip_;                      // (64), (d)
  std::mutex mutex_;
  Tensor made_, made_from_;  // the filter made last, and its weights
};

}  // namespace

const MixerFacts hyena_mixer{"hyena", make_mixer<HyenaMixer>};

}  // namespace nn
