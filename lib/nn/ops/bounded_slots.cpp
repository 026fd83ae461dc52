#include "nn/ops/bounded_slots.h"

#include "nn/kernels/bounded_slots_kernels.h"
#include "nn/ops/host_loops.h"

namespace nn {

Tensor read_bounded_slots(const Tensor& queries, const Tensor& pair_keys, const Tensor& pair_values,
    const Tensor& completes, std::int64_t heads, std::int64_t slots, bool lru, HeldSlots& held) {
  const torch::NoGradGuard no_gradient;
  const auto rows = queries.size(0), steps = queries.size(1), d = queries.size(2);
  const auto on_cpu = [](const Tensor& x) { return x.cpu().contiguous(); };
  const auto q = on_cpu(queries), new_k = on_cpu(pair_keys), new_v = on_cpu(pair_values);
  Tensor k, v, marks;
  if (held.marks.defined()) {
    k = on_cpu(held.keys), v = on_cpu(held.values), marks = on_cpu(held.marks);
  } else {
    k = torch::zeros({rows, heads, d / heads, slots}, q.options()), v = torch::zeros_like(k);
    marks = torch::zeros({rows, heads, 2, slots}, torch::kInt64);
  }
  const auto y = torch::empty_like(q);
  const SlotShape shape{slots, d / heads, d, lru};
  in_threads(q, rows * heads, [&]<class Real>(Real, std::int64_t i) {
    const auto row = i / heads, from = row * steps * d + i % heads * shape.width;
    const auto begin = i * shape.width * slots;
    auto* const mark = marks.data_ptr<std::int64_t>() + i * 2 * slots;
    read_slots<Real>(shape, steps, completes.const_data_ptr<bool>() + row * steps,
        q.const_data_ptr<Real>() + from, new_k.const_data_ptr<Real>() + from,
        new_v.const_data_ptr<Real>() + from, k.data_ptr<Real>() + begin, v.data_ptr<Real>() + begin,
        {mark, mark + slots}, y.data_ptr<Real>() + from);
  });
  held = {k.to(queries.device()), v.to(queries.device()), marks};
  return y.to(queries.device());
}

}  // namespace nn
