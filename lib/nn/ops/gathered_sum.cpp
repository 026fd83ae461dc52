#include "nn/ops/gathered_sum.h"

#include "nn/kernels/gathered_sum_kernels.h"
#include "nn/ops/host_loops.h"

namespace nn {
namespace {

thread_local RowReads* counting = nullptr;  // null: reads are not counted

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
    in_ranges(values, rows.size(0), [&]<class Real>(Real, std::int64_t begin, std::int64_t end) {
      gathered_sum_forward(
          gathered_of<Real>(values, rows, weights), begin, end, y.data_ptr<Real>());
    });
    context->save_for_backward({values, rows, weights});
    return y;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, const torch::autograd::variable_list& gradients) {
    const auto kept = context->get_saved_variables();
    const Tensor &values = kept[0], &rows = kept[1], &weights = kept[2];
    const Tensor d_y = gradients[0].contiguous(), d_weights = torch::empty_like(weights);
    const auto used = rows_used(rows.flatten());
    const Tensor d_values = torch::zeros({used.count(), values.size(1)}, values.options());
    in_ranges(values, rows.size(0), [&]<class Real>(Real, std::int64_t begin, std::int64_t end) {
      gathered_sum_weight_gradient(gathered_of<Real>(values, rows, weights),
          d_y.const_data_ptr<Real>(), begin, end, d_weights.data_ptr<Real>());
    });
    in_ranges(values, used.count(), [&]<class Real>(Real, std::int64_t begin, std::int64_t end) {
      gathered_sum_value_gradient(gathered_of<Real>(values, rows, weights),
          d_y.const_data_ptr<Real>(), used.order.const_data_ptr<std::int64_t>(), used.starts.data(),
          begin, end, d_values.data_ptr<Real>());
    });
    return {row_gradient(used.rows, d_values, values.sizes()), Tensor(), d_weights};
  }
};

}  // namespace

RowReads::RowReads(const std::vector<Tensor>& tables, const std::vector<Tensor>& counts)
    : tables_(tables), counts_(counts), counting_(counting, this) {}

void RowReads::add(const Tensor& values, const Tensor& rows) {
  if (counting == nullptr) return;
  auto reads = torch::ones_like(rows);
  if (const auto& real = counting->real_; real.defined())
    reads = reads.view({real.numel(), -1}) * real.to(rows.device()).view({-1, 1});
  for (std::size_t i = 0; i < counting->tables_.size(); ++i)
    if (counting->tables_[i].is_same(values))
      counting->counts_[i].index_add_(0, rows.flatten(), reads.flatten());
}

void RowReads::of_tokens(const Tensor& real) {
  if (counting != nullptr) counting->real_ = real;
}

Tensor gathered_sum(const Tensor& values, const Tensor& rows, const Tensor& weights) {
  RowReads::add(values, rows);
  if (loops_take(values))
    return GatheredSumFunction::apply(values.contiguous(), rows.contiguous(), weights.contiguous());
  const auto named = values.index_select(0, rows.flatten());
  return (named.view({rows.size(0), rows.size(1), values.size(1)}) * weights.unsqueeze(-1)).sum(1);
}

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
  in_ranges(values, used.count(), [&]<class Real>(Real, std::int64_t begin, std::int64_t end) {
    const GatheredSum<Real> in = {1, values.size(1), nullptr, row, ones.const_data_ptr<Real>()};
    gathered_sum_value_gradient(in, values.const_data_ptr<Real>(),
        used.order.const_data_ptr<std::int64_t>(), used.starts.data(), begin, end,
        sums.data_ptr<Real>());
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
