// S4D (Gu et al. 2022, "On the Parameterization and Initialization of Diagonal State Space Models",
// arXiv 2206.11893): a linear state space for each channel, without gates.
//
//   output = glu(c_proj(gelu(y))), y of the DiagonalStateSpace; glu(a, b) = a sigmoid(b)

#include "nn/arch/s4d.h"

#include "nn/base/recomputing.h"
#include "nn/base/upload.h"
#include "nn/ops/host_loops.h"
#include "nn/ops/long_convolution.h"

namespace nn {
namespace {

constexpr std::int64_t kFadePart = 32;  // steps

class S4dMixer : public Mixer {
 public:
  explicit S4dMixer(const ModelOptions& options) : Mixer(options.shape) {
    space_ =
        register_module("space", std::make_shared<DiagonalStateSpace>(d_, options.mixers.state));
    c_proj_ = add_matrix("c_proj", d_, 2 * d_, true);
    carried_.fixed = d_ * options.mixers.state;
  }

  Tensor forward(const Tensor& x, const MixerCall& call, const std::string& name) override {
    const auto y = space_->forward(x, call, name + ".state").to(x.scalar_type());
    return at::glu(c_proj_->forward(at::gelu(y)), 2);
  }

 private:
  std::shared_ptr<DiagonalStateSpace> space_;
  std::shared_ptr<Linear> c_proj_;
};

}  // namespace

DiagonalStateSpace::DiagonalStateSpace(std::int64_t d, std::int64_t n) : d_(d), pairs_(n / 2) {
  if (n % 2 != 0) core::bad_config("channel-state: {} is odd; its numbers are in pairs", n);
  dt_log_ = register_parameter("dt_log", blank({d_}));
  a_log_ = register_parameter("a_log", blank({d_ * pairs_}));
  a_imaginary_ = register_parameter("a_imaginary", blank({d_ * pairs_}));
  c_ = register_parameter("c", blank({2 * d_ * pairs_}));
  skip_ = register_parameter("skip", blank({d_}));
}

void DiagonalStateSpace::first_values() {
  dt_log_.uniform_(std::log(0.001), std::log(0.1));
  a_log_.fill_(std::log(0.5));
  a_imaginary_.copy_(
      M_PI * torch::arange(pairs_, a_log_.options().requires_grad(false)).repeat({d_}));
  c_.normal_(0, std::sqrt(0.5));
  skip_.normal_();
}

// The fade of t = part i + j steps is that of part i times that of j, so that all products over
// time are two small ones. Complex numbers are pairs of real ones in them.
Tensor DiagonalStateSpace::forward(
    const Tensor& input, const MixerCall& call, const std::string& name) {
  const ExactProducts exact_products;
  const auto type = accumulation_type(input);
  const auto rows = input.size(0), T = input.size(1), part = std::min(T, kFadePart),
             parts = (T + part - 1) / part;
  const auto u = input.to(type);
  const auto channels = [&](const Tensor& x) { return x.to(type).view({d_, pairs_}); };
  const auto a = torch::complex(-channels(a_log_.exp()), channels(a_imaginary_));
  const auto rate = a * dt_log_.to(type).exp().unsqueeze(1);  // (d, p)
  const auto c =
      2 * torch::view_as_complex(c_.to(type).view({d_, pairs_, 2})) * torch::expm1(rate) / a;
  const auto count = torch::arange(std::max(part, parts), u.options().requires_grad(false));
  const auto fades = [&](std::int64_t n, std::int64_t step) {  // (d, n, p)
    return (rate.unsqueeze(1) * (step * count.narrow(0, 0, n)).unsqueeze(1)).exp();
  };
  const auto far = fades(parts, part);                               // (d, parts, p)
  const auto near = torch::view_as_real(fades(part, 1)).flatten(2);  // (d, part, n)
  // The real parts of z (d, B, parts, p) times the fades of all steps, summed over p: (d, B, T).
  const auto over_time = [&](const Tensor& z) {
    const auto pairs = torch::view_as_real(z.conj_physical()).reshape({d_, -1, 2 * pairs_});
    const auto sums = pairs.matmul(near.transpose(1, 2));
    return sums.reshape({d_, -1, parts * part}).narrow(2, 0, T);
  };
  const auto filter = over_time(c.unsqueeze(1) * far).squeeze(1);
  auto y = long_convolution(u, filter, T) + skip_.to(type) * u;
  const auto carried = call.carried(name);
  Tensor h;  // (d, B, p)
  if (carried.defined()) {
    h = torch::view_as_complex(carried.to(type).view({rows, d_, pairs_, 2})).transpose(0, 1);
    const auto read = (c * rate.exp()).unsqueeze(1) * h;
    y = y + over_time(read.unsqueeze(2) * far.unsqueeze(1)).permute({1, 2, 0});
  }
  if (call.state == nullptr) return y;
  // Each row's real inputs, the newest first, then zeros.
  auto newest = u.flip(1);
  auto steps = torch::full({1}, T, count.options());
  if (call.count.defined()) {
    const auto from =
        upload(call.count.unsqueeze(1) - 1 - torch::arange(T, call.count.options()), u.device())
            .unsqueeze(2);
    newest = u.gather(1, from.clamp_min(0).expand_as(u)) * (from >= 0);
    steps = upload(call.count, u.device()).to(type);
  }
  newest = at::constant_pad_nd(newest.permute({2, 0, 1}), {0, parts * part - T});
  const auto sums =
      newest.reshape({d_, rows * parts, part}).matmul(near).view({d_, rows, parts, pairs_, 2});
  auto next = (torch::view_as_complex(sums) * far.unsqueeze(1)).sum(2);
  if (h.defined()) next = next + (rate.unsqueeze(1) * steps.unsqueeze(1)).exp() * h;
  call.carry(name, torch::view_as_real(next.transpose(0, 1).contiguous()).flatten(2));
  return y;
}

const MixerFacts s4d_mixer{"s4d", make_mixer<S4dMixer>};

}  // namespace nn
