#include "nn/ops/row_gradient.h"

#include "nn/kernels/gathered_sum_kernels.h"

namespace nn {

using torch::Tensor;

RowsUsed rows_used(const Tensor& named) {
  const auto sorted = named.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor names = std::get<0>(sorted).contiguous();
  const auto* const name = names.const_data_ptr<std::int64_t>();
  RowsUsed used;
  used.order = std::get<1>(sorted).contiguous();
  for (std::int64_t i = 0; i < names.numel(); ++i)
    if (i == 0 || name[i] != name[i - 1]) used.starts.push_back(i);
  used.rows = torch::empty({std::ssize(used.starts)}, torch::kInt64);
  auto* const row = used.rows.data_ptr<std::int64_t>();
  for (std::size_t r = 0; r < used.starts.size(); ++r) row[r] = name[used.starts[r]];
  used.starts.push_back(names.numel());
  return used;
}

Tensor row_gradient(const Tensor& rows, const Tensor& values, torch::IntArrayRef sizes) {
  return at::_sparse_coo_tensor_unsafe(rows.unsqueeze(0), values, sizes, values.options(),
                                       /*is_coalesced=*/true);
}

Tensor settled(const Tensor& sparse) {
  const torch::NoGradGuard no_grad;
  const Tensor rows = sparse._indices().select(0, 0).contiguous(),
               values = sparse._values().contiguous();
  const auto* const row = rows.const_data_ptr<std::int64_t>();
  bool ascending = true;
  for (std::int64_t i = 1; i < rows.numel() && ascending; ++i) ascending = row[i - 1] < row[i];
  if (ascending) return row_gradient(rows, values, sparse.sizes());
  const auto used = rows_used(rows);
  const Tensor sums = torch::zeros({used.count(), values.size(1)}, values.options()),
               ones = torch::ones({rows.numel()}, values.options());
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "settled", [&] {
    const GatheredSum<scalar_t> in = {1, values.size(1), nullptr, row,
                                      ones.const_data_ptr<scalar_t>()};
    at::parallel_for(0, used.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      gathered_sum_value_gradient(in, values.const_data_ptr<scalar_t>(),
                                  used.order.const_data_ptr<std::int64_t>(), used.starts.data(),
                                  begin, end, sums.data_ptr<scalar_t>());
    });
  });
  return row_gradient(used.rows, sums, sparse.sizes());
}

Tensor sum_of_gradients(const Tensor& a, const Tensor& b) {
  if (a.is_sparse() && b.is_sparse()) {
    const Tensor rows = torch::cat({a._indices(), b._indices()}, 1),
                 values = torch::cat({a._values(), b._values()});
    return settled(at::_sparse_coo_tensor_unsafe(rows, values, a.sizes(), values.options()));
  }
  return (a.is_sparse() ? a.to_dense() : a) + (b.is_sparse() ? b.to_dense() : b);
}

}  // namespace nn
