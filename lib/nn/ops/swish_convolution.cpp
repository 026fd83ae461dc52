#include "nn/ops/swish_convolution.h"

#include "nn/kernels/swish_convolution_kernels.h"
#include "nn/ops/host_loops.h"

namespace nn {
namespace {

template <class Real>
SwishConvolution<Real> convolution_of(
    const Tensor& x, const Tensor& past, const Tensor& weight, const Tensor& bias, bool swish) {
  return {x.size(1), x.size(2), weight.size(0), x.const_data_ptr<Real>(), x.stride(0), x.stride(1),
      past.const_data_ptr<Real>(), weight.const_data_ptr<Real>(), bias.const_data_ptr<Real>(),
      swish};
}

// Here weight is (taps, width).
class SwishConvolutionFunction : public torch::autograd::Function<SwishConvolutionFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& past,
      const Tensor& weight, const Tensor& bias, bool swish) {
    const Tensor y = torch::empty(x.sizes(), x.options());
    in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
      swish_convolution_forward(
          convolution_of<Real>(x, past, weight, bias, swish), row, y.data_ptr<Real>());
    });
    context->save_for_backward({x, past, weight, bias});
    context->saved_data["swish"] = swish;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto kept = context->get_saved_variables();
    const Tensor &x = kept[0], &past = kept[1], &weight = kept[2], &bias = kept[3];
    const bool swish = context->saved_data["swish"].toBool();
    const Tensor d_y = gradients[0].contiguous(), dx = torch::empty(x.sizes(), x.options()),
                 d_past = torch::empty_like(past),
                 d_weight = torch::empty({x.size(0), weight.size(0), weight.size(1)}, x.options()),
                 d_bias = torch::empty({x.size(0), x.size(2)}, x.options());
    in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
      const auto data = [](const Tensor& of) { return of.data_ptr<Real>(); };
      std::vector<Real> work(static_cast<std::size_t>(2 * x.size(2)));
      swish_convolution_backward(convolution_of<Real>(x, past, weight, bias, swish), row,
          {data(d_y), data(dx), data(d_past), data(d_weight), data(d_bias)}, work.data());
    });
    return {dx, d_past, d_weight.sum(0), d_bias.sum(0), {}};
  }
};

}  // namespace

Tensor swish_convolution(
    const Tensor& x, const Tensor& past, const Tensor& weight, const Tensor& bias, bool swish) {
  const auto type = x.scalar_type();
  if (loops_take(x))
    return SwishConvolutionFunction::apply(x.stride(2) == 1 ? x : x.contiguous(),
        past.to(type).contiguous(), weight.t().to(type).contiguous(),
        bias.defined() ? bias.to(type)
                       : torch::zeros({x.size(2)}, x.options().requires_grad(false)),
        swish);
  const auto all = torch::cat({past.to(type), x}, 1);  // (B, taps - 1 + T, width)
  auto z = all.narrow(1, 0, x.size(1)) * weight.select(1, 0);
  for (std::int64_t j = 1; j < weight.size(1); ++j)
    z = z + all.narrow(1, j, x.size(1)) * weight.select(1, j);
  if (bias.defined()) z = z + bias;
  return swish ? torch::silu(z) : z;
}

}  // namespace nn
