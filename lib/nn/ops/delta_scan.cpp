#include "nn/ops/delta_scan.h"

#include <ATen/ops/linalg_solve_triangular.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <vector>

#include "nn/base/cuda.h"
#include "nn/kernels/delta_scan_kernels.h"
#include "nn/ops/scan_heads.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Float>
DeltaHead<Float> delta_head_of(const variable_list& in, std::int64_t row, std::int64_t head) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], &beta = in[3], &log_decay = in[4];
  return {q.size(1),
          q.size(3),
          v.size(3),
          q.stride(1),
          v.stride(1),
          beta.stride(1),
          part_of<Float>(q, row, head),
          part_of<Float>(k, row, head),
          part_of<Float>(v, row, head),
          part_of<Float>(beta, row, head),
          part_of<Float>(log_decay, row, head)};
}

DeltaInputs inputs_of(const variable_list& in) {
  const auto data = [&](std::size_t i) { return in[i].const_data_ptr<float>(); };
  return {in[0].size(0), in[0].size(1), in[0].size(2), in[0].size(3), in[2].size(3),
          data(0),       data(1),       data(2),       data(3),       data(4)};
}

Tensor squares_for(const DeltaInputs& in, const Tensor& like) {
  return torch::empty({delta_squares(in)}, like.options());
}

void forward_on(const CudaKernels& cuda, const variable_list& in, const Tensor& state,
                const Tensor& o) {
  const auto inputs = inputs_of(in);
  const auto squares = squares_for(inputs, o);
  check_launch(cuda.delta_forward(inputs, squares.data_ptr<float>(), state.data_ptr<float>(),
                                  o.data_ptr<float>(), cuda_stream(o)),
               "delta_forward");
}

// `out` has the layout of DeltaScan::backward's result. Returns the gradient of the first state.
Tensor backward_on(const CudaKernels& cuda, const variable_list& in, const Tensor& d_o,
                   const Tensor& d_state, const variable_list& out) {
  const auto inputs = inputs_of(in);
  const Tensor &v = in[2], &start = in[5], squares = squares_for(inputs, v);
  const auto places = inputs.chunks() + 1;
  const Tensor states = torch::empty(
                   {start.size(0), start.size(1), places, start.size(2), start.size(3)},
                   start.options()),
               d_states = torch::empty_like(states), z = torch::empty_like(v),
               d_u = torch::empty_like(v);
  states.select(2, 0).copy_(start);
  d_states.select(2, places - 1).copy_(d_state);
  const auto data = [](const Tensor& x) { return x.data_ptr<float>(); };
  check_launch(
      cuda.delta_backward(
          inputs, {data(squares), data(states), data(d_states), data(z), data(d_u)},
          {data(d_o), data(out[0]), data(out[1]), data(out[2]), data(out[3]), data(out[4])},
          cuda_stream(v)),
      "delta_backward");
  return d_states.select(2, 0).contiguous();
}

class DeltaScan : public torch::autograd::Function<DeltaScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Tensor& beta, const Tensor& log_decay,
                               const Tensor& start) {
    const variable_list in = {q, k, v, beta, log_decay, start};
    const Tensor state = start.clone(), o = torch::empty_like(v);
    context->save_for_backward(in);
    if (const auto* const cuda = cuda_kernels(q)) {
      forward_on(*cuda, in, state, o);
      return {o, state};
    }
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "delta_scan", [&] {
      each_head(q, [&](std::int64_t row, std::int64_t head) {
        delta_forward(delta_head_of<scalar_t>(in, row, head), matrix_of<scalar_t>(state, row, head),
                      part_of<scalar_t>(o, row, head));
      });
    });
    return {o, state};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto in = context->get_saved_variables();
    const Tensor &q = in[0], &v = in[2], &start = in[5];
    const Tensor d_o = gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(v),
                 d_start = gradients[1].defined() ? gradients[1].clone(at::MemoryFormat::Contiguous)
                                                  : torch::zeros_like(start);
    variable_list out;  // of q, k, v, beta, log_decay
    for (std::size_t i = 0; i < 5; ++i) out.push_back(torch::empty_like(in[i]));
    if (const auto* const cuda = cuda_kernels(q)) {
      out.push_back(backward_on(*cuda, in, d_o, d_start, out));
      return out;
    }
    const Tensor state = start.clone();
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "delta_scan", [&] {
      each_head(q, [&](std::int64_t row, std::int64_t head) {
        const auto part = [&](const Tensor& x) { return part_of<scalar_t>(x, row, head); };
        delta_backward(delta_head_of<scalar_t>(in, row, head),
                       matrix_of<scalar_t>(state, row, head),
                       matrix_of<scalar_t>(d_start, row, head),
                       DeltaGradients<scalar_t>{part(d_o), part(out[0]), part(out[1]), part(out[2]),
                                                part(out[3]), part(out[4])});
      });
    });
    out.push_back(d_start);
    return out;
  }
};

}  // namespace

DeltaOutput delta_scan(const DeltaInput& in) {
  const auto type = in.q.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto whole = [&](const Tensor& x) { return x.to(type).contiguous(); };
  const Tensor q = whole(in.q);
  if (!in_host_memory(q) && cuda_kernels(q) == nullptr) return delta_scan_chunks(in);
  const auto out = DeltaScan::apply(q, whole(in.k), whole(in.v), whole(in.beta),
                                    whole(in.log_decay), whole(in.start));
  return {out[0], out[1]};
}

// The formulas of delta_scan_kernels.cpp for all chunks at once. Only the terms with the state
// before a chunk are computed chunk by chunk: u = written - kept S.
DeltaOutput delta_scan_chunks(const DeltaInput& in) {
  constexpr std::int64_t kChunk = 64;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  if (in.q.size(1) == 0) return {torch::zeros_like(in.v), in.start};
  const auto type = in.q.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto cut = [&](const Tensor& x) { return in_chunks(x.to(type), kChunk); };
  const Tensor q = cut(in.q), k = cut(in.k), v = cut(in.v), beta = cut(in.beta.unsqueeze(3));
  // (B, heads, chunks, kChunk, 1). The sums are double, because differences of large sums cancel.
  const Tensor b = sums_so_far(in_chunks(in.log_decay.unsqueeze(3).to(torch::kFloat64), kChunk)),
               last = b.narrow(3, kChunk - 1, 1);
  const auto faded = [&](const Tensor& x) { return x.clamp_max(0).to(type).exp(); };
  const auto fade = faded(b - b.transpose(-1, -2)), from_start = faded(b), to_end = faded(last - b),
             keep = faded(last);
  const auto strict = (beta * k.matmul(k.transpose(-1, -2)) * fade).tril(-1),
             attended = (q.matmul(k.transpose(-1, -2)) * fade).tril();
  const auto solved = at::linalg_solve_triangular(  // (I + strict)^-1 applied to both
      strict, torch::cat({beta * v, beta * from_start * k}, -1), /*upper=*/false, /*left=*/true,
      /*unitriangular=*/true);
  const auto parts = solved.split_with_sizes({v.size(4), k.size(4)}, -1);
  const auto read = q * from_start, keys = (k * to_end).transpose(-1, -2);
  std::vector<Tensor> out;
  Tensor state = in.start.to(type);
  for (std::int64_t i = 0; i < q.size(2); ++i) {
    const auto u = parts[0].select(2, i) - parts[1].select(2, i).matmul(state);
    out.push_back(read.select(2, i).matmul(state) + attended.select(2, i).matmul(u));
    state = keep.select(2, i) * state + keys.select(2, i).matmul(u);
  }
  return {from_chunks(torch::stack(out, 2), in.q.size(1)), state};
}

DeltaOutput delta_scan_plain(const DeltaInput& in) {
  auto state = in.start;
  std::vector<Tensor> out;
  for (std::int64_t t = 0; t < in.q.size(1); ++t) {
    const auto k = in.k.select(1, t).unsqueeze(3);  // (B, heads, d_key, 1)
    const auto per_head = [&](const Tensor& x) { return x.select(1, t).unsqueeze(2).unsqueeze(3); };
    const auto faded = per_head(in.log_decay).exp() * state;
    const auto missing = in.v.select(1, t).unsqueeze(2) - (k * faded).sum(2, /*keepdim=*/true);
    state = faded + per_head(in.beta) * k * missing;
    out.push_back((in.q.select(1, t).unsqueeze(3) * state).sum(2));
  }
  return {out.empty() ? torch::zeros_like(in.v) : torch::stack(out, 1), state};
}

}  // namespace nn
