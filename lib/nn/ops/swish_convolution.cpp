#include "nn/ops/swish_convolution.h"

#include "nn/base/cuda.h"
#include "nn/kernels/swish_convolution_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Real>
SwishConvolution<Real> convolution_of(
    const Tensor& x, const Tensor& past, const Tensor& weight, const Tensor& bias, bool swish) {
  return {x.size(1), x.size(2), weight.size(0), x.const_data_ptr<Real>(), x.stride(0), x.stride(1),
      past.const_data_ptr<Real>(), weight.const_data_ptr<Real>(), bias.const_data_ptr<Real>(),
      swish};
}

/// Calls f(row) for each row in all threads.
template <class F> void each_row_of(const Tensor& x, const F& f) {
  at::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) f(row);
  });
}

// Here weight is (taps, width).
class SwishConvolutionFunction : public torch::autograd::Function<SwishConvolutionFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& past,
      const Tensor& weight, const Tensor& bias, bool swish) {
    const Tensor y = torch::empty(x.sizes(), x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swish_convolution", [&] {
      const auto in = convolution_of<scalar_t>(x, past, weight, bias, swish);
      each_row_of(
          x, [&](std::int64_t row) { swish_convolution_forward(in, row, y.data_ptr<scalar_t>()); });
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
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swish_convolution", [&] {
      const auto in = convolution_of<scalar_t>(x, past, weight, bias, swish);
      each_row_of(x, [&](std::int64_t row) {
        std::vector<scalar_t> work(static_cast<std::size_t>(2 * in.width));
        swish_convolution_backward(in, row,
            SwishConvolutionGradients<scalar_t>{d_y.data_ptr<scalar_t>(), dx.data_ptr<scalar_t>(),
                d_past.data_ptr<scalar_t>(), d_weight.data_ptr<scalar_t>(),
                d_bias.data_ptr<scalar_t>()},
            work.data());
      });
    });
    return {dx, d_past, d_weight.sum(0), d_bias.sum(0), {}};
  }
};

}  // namespace

Tensor swish_convolution(
    const Tensor& x, const Tensor& past, const Tensor& weight, const Tensor& bias, bool swish) {
  const auto type = x.scalar_type();
  if (in_host_memory(x) && (type == torch::kFloat32 || type == torch::kFloat64))
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
