#include "nn/ops/gla_scan.h"

#include "nn/base/recomputing.h"
#include "nn/kernels/gla_scan_kernels.h"

namespace nn {
namespace {

template <class Float>
GlaHead<Float> head_of(const Tensor& q, const Tensor& k, const Tensor& decay, const Tensor& v,
    std::int64_t row, std::int64_t head) {
  const auto keys = row * q.stride(0) + head * q.stride(2),
             values = row * v.stride(0) + head * v.stride(2);
  return {q.size(1), q.size(3), v.size(3), q.stride(1), v.stride(1),
      q.const_data_ptr<Float>() + keys, k.const_data_ptr<Float>() + keys,
      decay.const_data_ptr<Float>() + keys, v.const_data_ptr<Float>() + values};
}

class GlaScan : public torch::autograd::Function<GlaScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& q, const Tensor& k,
      const Tensor& log_decay, const Tensor& v, const Tensor& start) {
    const Tensor decay = log_decay.exp(), state = start.clone(), o = torch::empty_like(v);
    each_head(q, [&]<class Real>(Real, std::int64_t row, std::int64_t head) {
      gla_forward(head_of<Real>(q, k, decay, v, row, head), matrix_of<Real>(state, row, head),
          part_of<Real>(o, row, head));
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
    each_head(q, [&]<class Real>(Real, std::int64_t row, std::int64_t head) {
      std::vector<Real> work(static_cast<std::size_t>(q.size(3)));
      gla_backward(head_of<Real>(q, k, decay, v, row, head), matrix_of<Real>(state, row, head),
          matrix_of<Real>(d_start, row, head), work.data(),
          GlaGradients<Real>{part_of<Real>(d_o, row, head), part_of<Real>(d_q, row, head),
              part_of<Real>(d_k, row, head), part_of<Real>(d_log_decay, row, head),
              part_of<Real>(d_v, row, head)});
    });
    return {d_q, d_k, d_log_decay, d_v, d_start};
  }
};

// exp(b_t - b_s) for the steps t and s <= t of a part, b (..., part, d_key): (..., t, s, d_key).
Tensor fades(const Tensor& b) { return (b.unsqueeze(4) - b.unsqueeze(3)).clamp_max_(0).exp_(); }

// The sums over d_key of q_t k_s exp(b_t - b_s), for s <= t; q, k, b (..., part, d_key) ->
// (..., t, s). Backward computes the products of all pairs of steps again, since a layer's would
// take gigabytes (16 times what q takes, for each part, three times).
class PartScores : public torch::autograd::Function<PartScores> {
 public:
  static Tensor forward(
      AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& b) {
    context->save_for_backward({q, k, b});
    return fades(b).mul_(q.unsqueeze(4)).mul_(k.unsqueeze(3)).sum(-1).tril();
  }
  // With w_ts the gradient of the sum of t and s: d_q_t = sum over s of w_ts k_s exp(b_t - b_s),
  // d_k_s likewise over t, and d_b_t = q_t d_q_t - k_t d_k_t.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &b = saved[2];
    const Tensor weighted = fades(b).mul_(gradients[0].tril().unsqueeze(5));
    const Tensor d_q = (weighted * k.unsqueeze(3)).sum(4), d_k = (weighted * q.unsqueeze(4)).sum(3);
    return {d_q, d_k, q * d_q - k * d_k};
  }
};

template <class Float>
DeltaHead<Float> delta_head_of(const variable_list& in, std::int64_t row, std::int64_t head) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], &beta = in[3], &log_decay = in[4];
  return {q.size(1), q.size(3), v.size(3), q.stride(1), v.stride(1), beta.stride(1),
      part_of<Float>(q, row, head), part_of<Float>(k, row, head), part_of<Float>(v, row, head),
      part_of<Float>(beta, row, head), part_of<Float>(log_decay, row, head)};
}

DeltaInputs inputs_of(const variable_list& in) {
  const auto data = [&](std::size_t i) { return in[i].const_data_ptr<float>(); };
  return {in[0].size(0), in[0].size(1), in[0].size(2), in[0].size(3), in[2].size(3), data(0),
      data(1), data(2), data(3), data(4)};
}

Tensor squares_for(const DeltaInputs& in, const Tensor& like) {
  return torch::empty({delta_squares(in)}, like.options());
}

void forward_on(
    const CudaKernels& cuda, const variable_list& in, const Tensor& state, const Tensor& o) {
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
      cuda.delta_backward(inputs, {data(squares), data(states), data(d_states), data(z), data(d_u)},
          {data(d_o), data(out[0]), data(out[1]), data(out[2]), data(out[3]), data(out[4])},
          cuda_stream(v)),
      "delta_backward");
  return d_states.select(2, 0).contiguous();
}

class DeltaScan : public torch::autograd::Function<DeltaScan> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& q, const Tensor& k,
      const Tensor& v, const Tensor& beta, const Tensor& log_decay, const Tensor& start) {
    const variable_list in = {q, k, v, beta, log_decay, start};
    const Tensor state = start.clone(), o = torch::empty_like(v);
    context->save_for_backward(in);
    if (const auto* const cuda = cuda_kernels(q)) {
      forward_on(*cuda, in, state, o);
      return {o, state};
    }
    each_head(q, [&]<class Real>(Real, std::int64_t row, std::int64_t head) {
      delta_forward(delta_head_of<Real>(in, row, head), matrix_of<Real>(state, row, head),
          part_of<Real>(o, row, head));
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
    each_head(q, [&]<class Real>(Real, std::int64_t row, std::int64_t head) {
      const auto part = [&](const Tensor& x) { return part_of<Real>(x, row, head); };
      delta_backward(delta_head_of<Real>(in, row, head), matrix_of<Real>(state, row, head),
          matrix_of<Real>(d_start, row, head),
          DeltaGradients<Real>{
              part(d_o), part(out[0]), part(out[1]), part(out[2]), part(out[3]), part(out[4])});
    });
    out.push_back(d_start);
    return out;
  }
};

}  // namespace

GlaOutput gla_scan(const GlaInput& in) {
  if (in.log_decay.size(3) < in.q.size(3) || in.q.size(2) < in.v.size(2)) {
    const ExactProducts exact_products;
    const auto exact = accumulation_type(in.v);
    const GlaInput whole{
        in.q.to(exact), in.k.to(exact), in.log_decay.to(exact), in.v.to(exact), in.start.to(exact)};
    return in.q.size(1) == 1 ? gla_scan_plain(whole) : gla_scan_chunks(whole);
  }
  if (!loops_take(in.q)) return in.q.size(1) == 1 ? gla_scan_plain(in) : gla_scan_chunks(in);
  const auto out = GlaScan::apply(in.q.contiguous(), in.k.contiguous(), in.log_decay.contiguous(),
      in.v.contiguous(), in.start.to(in.q.scalar_type()).contiguous());
  return {out[0], out[1]};
}

// Notation within a chunk: b is the sum of log_decay from the chunk's start, S the state before it.
//   o_t = (q_t e^{b_t})^T S + sum over s <= t of (q_t . k_s e^{b_t - b_s}) v_s
// The chunk is divided into parts, so that no exponent is above 0. Steps before a part use its
// start as the reference; steps within it are computed one by one. A decay for each head needs no
// parts; its sums are double, because differences of large sums cancel.
GlaOutput gla_scan_chunks(const GlaInput& in) {
  constexpr std::int64_t kChunk = 64, kPart = 16;
  if (in.q.size(1) == 0) return {torch::zeros_like(in.v), in.start};
  const auto cut = [](const Tensor& x) { return in_chunks(x, kChunk); };
  const bool of_heads = in.log_decay.size(3) == 1;
  const Tensor q = cut(in.q), k = cut(in.k), v = cut(in.v),
               b = sums_so_far(cut(of_heads ? in.log_decay.to(torch::kFloat64) : in.log_decay));
  const auto raised = [&](const Tensor& x) {
    return of_heads ? x.exp().to(v.scalar_type()) : x.exp();
  };

  std::vector<Tensor> parts;
  if (of_heads) {
    // At most 0. A sum that rounding makes positive keeps its gradient.
    const Tensor since = b - b.transpose(-1, -2), fade = raised(since - since.detach().relu());
    parts.push_back((q.matmul(k.transpose(-1, -2)) * fade).tril().matmul(v));
  }
  for (std::int64_t at = 0; at < kChunk && !of_heads; at += kPart) {
    const Tensor q_part = q.narrow(3, at, kPart), b_part = b.narrow(3, at, kPart);
    const auto own = PartScores::apply(q_part, k.narrow(3, at, kPart), b_part);
    auto out = own.to(v.scalar_type()).matmul(v.narrow(3, at, kPart));
    if (at > 0) {
      const Tensor start = b.narrow(3, at - 1, 1);
      const auto queries = q_part * (b_part - start).exp(),
                 keys = k.narrow(3, 0, at) * (start - b.narrow(3, 0, at)).exp();
      out = out + queries.matmul(keys.transpose(-1, -2)).matmul(v.narrow(3, 0, at));
    }
    parts.push_back(out);
  }

  const Tensor last = b.select(3, kChunk - 1);  // (B, heads, chunks, d_key)
  const auto added = (k * raised(last.unsqueeze(3) - b)).transpose(-1, -2).matmul(v),
             faded = raised(last).unsqueeze(-1);
  std::vector<Tensor> before;
  Tensor state = in.start;
  for (std::int64_t i = 0; i < q.size(2); ++i) {
    before.push_back(state);
    state = faded.select(2, i) * state + added.select(2, i);
  }
  const auto carried = (q * raised(b)).matmul(torch::stack(before, 2));
  return {from_chunks(torch::cat(parts, 3) + carried, in.q.size(1)), state};
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

DeltaOutput delta_scan(const DeltaInput& in) {
  const auto type = accumulation_type(in.q);
  const auto whole = [&](const Tensor& x) { return x.to(type).contiguous(); };
  const Tensor q = whole(in.q);
  if (!in_host_memory(q) && cuda_kernels(q) == nullptr) return delta_scan_chunks(in);
  const auto out = DeltaScan::apply(
      q, whole(in.k), whole(in.v), whole(in.beta), whole(in.log_decay), whole(in.start));
  return {out[0], out[1]};
}

// The formulas of delta_scan_kernels.cpp for all chunks at once. Only the terms with the state
// before a chunk are computed chunk by chunk: u = written - kept S.
DeltaOutput delta_scan_chunks(const DeltaInput& in) {
  constexpr std::int64_t kChunk = 64;
  const ExactProducts exact_products;
  if (in.q.size(1) == 0) return {torch::zeros_like(in.v), in.start};
  const auto type = accumulation_type(in.q);
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

}  // namespace nn
