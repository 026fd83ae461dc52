#include "nn/ops/entry_products.h"

#include "nn/base/cuda.h"
#include "nn/kernels/entry_product_kernels.h"

namespace nn {
namespace {

// Whether the kernels can read x: float32 on the CPU with contiguous rows.
bool reads(const Tensor& x) {
  return in_host_memory(x) && x.scalar_type() == torch::kFloat32 && x.stride(1) == 1;
}
bool fits(const Tensor& a, const Tensor& b, std::int64_t width) {
  return reads(a) && reads(b) && width % kEntryWidths == 0;
}

Matrix read(const Tensor& x) {
  return {x.const_data_ptr<float>(), x.size(0), x.size(1), x.stride(0)};
}
MatrixOut write(const Tensor& x) {
  return {x.data_ptr<float>(), x.size(0), x.size(1), x.stride(0)};
}

// Calls f(begin, end) for ranges of entries that begin at whole tiles.
template <class F> void parts_of_entries(std::int64_t entries, F f) {
  const std::int64_t tiles = (entries + kEntryTile - 1) / kEntryTile;
  at::parallel_for(0, tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    f(begin * kEntryTile, std::min(end * kEntryTile, entries));
  });
}

}  // namespace

Tensor entry_products(const Tensor& queries, const Tensor& keys) {
  if (!fits(queries, keys, queries.size(1))) return torch::mm(queries, keys.t());
  const Tensor scores = torch::empty({queries.size(0), keys.size(0)}, queries.options());
  parts_of_entries(keys.size(0), [&](std::int64_t begin, std::int64_t end) {
    entry_scores(read(queries), read(keys), begin, end, write(scores));
  });
  return scores;
}

void add_query_gradient(const Tensor& d, const Tensor& keys, Tensor& d_queries) {
  if (!fits(d, keys, keys.size(1))) {
    d_queries.addmm_(d, keys);
    return;
  }
  at::parallel_for(0, d.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    add_query_gradients(read(d), read(keys), begin, end, write(d_queries));
  });
}

void add_entry_gradient(const Tensor& d, const Tensor& queries, Tensor& d_keys) {
  if (!fits(d, queries, queries.size(1))) {
    d_keys.addmm_(d.t(), queries);
    return;
  }
  parts_of_entries(d_keys.size(0), [&](std::int64_t begin, std::int64_t end) {
    add_entry_gradients(read(d), read(queries), begin, end, write(d_keys));
  });
}

}  // namespace nn
