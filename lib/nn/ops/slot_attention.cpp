#include "nn/ops/slot_attention.h"

#include "nn/base/cuda.h"
#include "nn/kernels/bounded_slots_kernels.h"
#include "nn/kernels/slot_attention_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLeastQueries = 64;  // for fewer queries torch's operators run instead
constexpr std::int64_t kTogether = 512;     // queries of a task

const float* from(const Tensor& x, std::int64_t offset) {
  return x.const_data_ptr<float>() + offset;
}
float* to(const Tensor& x, std::int64_t offset) { return x.data_ptr<float>() + offset; }

class AttendSlots : public torch::autograd::Function<AttendSlots> {
 public:
  static Tensor forward(
      AutogradContext* context, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in) {
    const auto q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
    const auto d = q.size(-1), n = q.numel() / d, heads = k.size(0), slots = k.size(1),
               width = k.size(2), parts = (n + kTogether - 1) / kTogether;
    const Tensor o = torch::empty_like(q), log_sums = torch::empty({heads, n}, q.options());
    at::parallel_for(0, heads * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      SlotAttention attention(slots, width, d);
      for (auto i = begin; i < end; ++i) {
        const auto head = i / parts, first = i % parts * kTogether;
        const auto at = first * d + head * width, slot = head * slots * width;
        attention.forward(std::min(kTogether, n - first), from(q, at), from(k, slot), from(v, slot),
            to(o, at), to(log_sums, head * n + first));
      }
    });
    context->save_for_backward({q, k, v, o, log_sums});
    return o;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto kept = context->get_saved_variables();
    const Tensor &q = kept[0], &k = kept[1], &v = kept[2], &o = kept[3], &log_sums = kept[4];
    const auto d_o = d_out[0].contiguous();
    const auto d = q.size(-1), n = q.numel() / d, slots = k.size(1), width = k.size(2);
    const Tensor dq = torch::empty_like(q), dk = torch::empty_like(k), dv = torch::empty_like(v);
    at::parallel_for(0, k.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      SlotAttention attention(slots, width, d);
      for (auto head = begin; head < end; ++head) {
        const auto at = head * width, slot = head * slots * width;
        attention.backward(n, from(q, at), from(k, slot), from(v, slot), from(o, at),
            from(log_sums, head * n), from(d_o, at), to(dq, at), to(dk, slot), to(dv, slot));
      }
    });
    return {dq, dk, dv};
  }
};

}  // namespace

bool attend_slots_fits(const Tensor& queries, const Tensor& keys) {
  return in_host_memory(queries) && queries.scalar_type() == torch::kFloat32 &&
         queries.numel() >= kLeastQueries * queries.size(-1) && SlotAttention::fits(keys.size(2));
}

Tensor attend_slots(const Tensor& queries, const Tensor& keys, const Tensor& values) {
  return AttendSlots::apply(queries, keys, values);
}

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
  AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "read_slots", [&] {
    const auto head = [&](std::int64_t i) {
      const auto row = i / heads, from = row * steps * d + i % heads * shape.width;
      const auto begin = i * shape.width * slots;
      auto* const mark = marks.data_ptr<std::int64_t>() + i * 2 * slots;
      read_slots<scalar_t>(shape, steps, completes.const_data_ptr<bool>() + row * steps,
          q.const_data_ptr<scalar_t>() + from, new_k.const_data_ptr<scalar_t>() + from,
          new_v.const_data_ptr<scalar_t>() + from, k.data_ptr<scalar_t>() + begin,
          v.data_ptr<scalar_t>() + begin, {mark, mark + slots}, y.data_ptr<scalar_t>() + from);
    };
    at::parallel_for(0, rows * heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) head(i);
    });
  });
  held = {k.to(queries.device()), v.to(queries.device()), marks};
  return y.to(queries.device());
}

}  // namespace nn
