#include "nn/ops/gathered_sum.h"

#include "nn/base/cuda.h"
#include "nn/kernels/gathered_sum_kernels.h"
#include "nn/ops/row_gradient.h"

namespace nn {
namespace {

using torch::Tensor;

template <class Real>
GatheredSum<Real> gathered_of(const Tensor& values, const Tensor& rows, const Tensor& weights) {
  return {rows.size(1), values.size(1), values.const_data_ptr<Real>(),
          rows.const_data_ptr<std::int64_t>(), weights.const_data_ptr<Real>()};
}

class GatheredSumFunction : public torch::autograd::Function<GatheredSumFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& values,
                        const Tensor& rows, const Tensor& weights) {
    const Tensor y = torch::empty({rows.size(0), values.size(1)}, values.options());
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "gathered_sum", [&] {
      const auto in = gathered_of<scalar_t>(values, rows, weights);
      auto* const out = y.data_ptr<scalar_t>();
      at::parallel_for(0, rows.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
        gathered_sum_forward(in, begin, end, out);
      });
    });
    context->save_for_backward({values, rows, weights});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto kept = context->get_saved_variables();
    const Tensor &values = kept[0], &rows = kept[1], &weights = kept[2];
    const Tensor d_y = gradients[0].contiguous(), d_weights = torch::empty_like(weights);
    const auto used = rows_used(rows.flatten());
    const Tensor d_values = torch::zeros({used.count(), values.size(1)}, values.options());
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "gathered_sum", [&] {
      const auto in = gathered_of<scalar_t>(values, rows, weights);
      const auto* const of_sums = d_y.const_data_ptr<scalar_t>();
      auto* const to_weights = d_weights.data_ptr<scalar_t>();
      auto* const to_values = d_values.data_ptr<scalar_t>();
      at::parallel_for(0, rows.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
        gathered_sum_weight_gradient(in, of_sums, begin, end, to_weights);
      });
      at::parallel_for(0, used.count(), 1, [&](std::int64_t begin, std::int64_t end) {
        gathered_sum_value_gradient(in, of_sums, used.order.const_data_ptr<std::int64_t>(),
                                    used.starts.data(), begin, end, to_values);
      });
    });
    return {row_gradient(used.rows, d_values, values.sizes()), Tensor(), d_weights};
  }
};

}  // namespace

Tensor gathered_sum(const Tensor& values, const Tensor& rows, const Tensor& weights) {
  const auto type = values.scalar_type();
  if (in_host_memory(values) && (type == torch::kFloat32 || type == torch::kFloat64))
    return GatheredSumFunction::apply(values.contiguous(), rows.contiguous(), weights.contiguous());
  const auto named = values.index_select(0, rows.flatten());
  return (named.view({rows.size(0), rows.size(1), values.size(1)}) * weights.unsqueeze(-1)).sum(1);
}

}  // namespace nn
