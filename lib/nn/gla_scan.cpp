#include "nn/gla_scan.h"

#include <vector>

#include "nn/gla_scan_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Float>
GlaHead<Float> head_of(const Tensor& q, const Tensor& k, const Tensor& decay, const Tensor& v,
                       std::int64_t row, std::int64_t head) {
  const auto keys = row * q.stride(0) + head * q.stride(2),
             values = row * v.stride(0) + head * v.stride(2);
  return {q.size(1),
          q.size(3),
          v.size(3),
          q.stride(1),
          v.stride(1),
          q.const_data_ptr<Float>() + keys,
          k.const_data_ptr<Float>() + keys,
          decay.const_data_ptr<Float>() + keys,
          v.const_data_ptr<Float>() + values};
}

/// f(row, head) in all threads.
template <class F>
void each_head(const Tensor& q, F f) {
  const auto heads = q.size(2);
  at::parallel_for(0, q.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i / heads, i % heads);
  });
}

template <class Float>
Float* matrix(const Tensor& states, std::int64_t row, std::int64_t head) {
  return states.data_ptr<Float>() + row * states.stride(0) + head * states.stride(1);
}

template <class Float>
Float* part(const Tensor& steps, std::int64_t row, std::int64_t head) {
  return steps.data_ptr<Float>() + row * steps.stride(0) + head * steps.stride(2);
}

class GlaScan : public torch::autograd::Function<GlaScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& q, const Tensor& k,
                               const Tensor& log_decay, const Tensor& v, const Tensor& start) {
    const Tensor decay = log_decay.exp(), state = start.clone(), o = torch::empty_like(v);
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "gla_scan", [&] {
      each_head(q, [&](std::int64_t row, std::int64_t head) {
        gla_forward(head_of<scalar_t>(q, k, decay, v, row, head),
                    matrix<scalar_t>(state, row, head), part<scalar_t>(o, row, head));
      });
    });
    context->save_for_backward({q, k, decay, v, start});
    return {o, state};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto s = context->get_saved_variables();
    const Tensor &q = s[0], &k = s[1], &decay = s[2], &v = s[3], &start = s[4];
    const Tensor d_o = gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(v),
                 d_start = gradients[1].defined() ? gradients[1].clone(at::MemoryFormat::Contiguous)
                                                  : torch::zeros_like(start),
                 state = start.clone(), d_q = torch::empty_like(q), d_k = torch::empty_like(k),
                 d_log_decay = torch::empty_like(q), d_v = torch::empty_like(v);
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "gla_scan", [&] {
      each_head(q, [&](std::int64_t row, std::int64_t head) {
        std::vector<scalar_t> work(static_cast<std::size_t>(q.size(3)));
        gla_backward(
            head_of<scalar_t>(q, k, decay, v, row, head), matrix<scalar_t>(state, row, head),
            matrix<scalar_t>(d_start, row, head), work.data(),
            GlaGradients<scalar_t>{part<scalar_t>(d_o, row, head), part<scalar_t>(d_q, row, head),
                                   part<scalar_t>(d_k, row, head),
                                   part<scalar_t>(d_log_decay, row, head),
                                   part<scalar_t>(d_v, row, head)});
      });
    });
    return {d_q, d_k, d_log_decay, d_v, d_start};
  }
};

}  // namespace

GlaOutput gla_scan(const GlaInput& in) {
  const auto type = in.q.scalar_type();
  if (!in.q.is_cpu() || (type != torch::kFloat32 && type != torch::kFloat64))
    return gla_scan_plain(in);
  const auto out = GlaScan::apply(in.q.contiguous(), in.k.contiguous(), in.log_decay.contiguous(),
                                  in.v.contiguous(), in.start.to(type).contiguous());
  return {out[0], out[1]};
}

GlaOutput gla_scan_plain(const GlaInput& in) {
  auto state = in.start;
  std::vector<Tensor> out;
  for (std::int64_t t = 0; t < in.q.size(1); ++t) {
    state = in.log_decay.select(1, t).exp().unsqueeze(3) * state +
            in.k.select(1, t).unsqueeze(3) * in.v.select(1, t).unsqueeze(2);
    out.push_back((in.q.select(1, t).unsqueeze(3) * state).sum(2));
  }
  return {out.empty() ? torch::zeros_like(in.v) : torch::stack(out, 1), state};
}

}  // namespace nn
