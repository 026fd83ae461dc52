#include "nn/ops/slot_attention.h"

#include "nn/base/cuda.h"
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
  static Tensor forward(AutogradContext* context, const Tensor& q_in, const Tensor& k_in,
                        const Tensor& v_in) {
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
                           from(log_sums, head * n), from(d_o, at), to(dq, at), to(dk, slot),
                           to(dv, slot));
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

}  // namespace nn
