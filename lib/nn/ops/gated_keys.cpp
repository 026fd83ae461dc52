#include "nn/ops/gated_keys.h"

#include "nn/base/cuda.h"
#include "nn/ops/leaky.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kNoLevel = -1e30;  // level of an empty sum: e^level is 0

/// Returns the carried sums (B, d) and levels (B, heads), or their initial values.
GatedSums carried_in(const Tensor& x, const Tensor& gate, const GatedSums& before) {
  const auto rows = x.size(0), heads = gate.size(2);
  if (!before.sums.defined())
    return {torch::zeros({rows, x.size(2)}, x.options().requires_grad(false)),
        torch::full({rows, heads}, kNoLevel, gate.options().requires_grad(false))};
  const auto fresh = before.sums.detach().view({rows, heads, -1}).eq(0).all(2);
  return {before.sums, before.levels.detach().to(gate.dtype()).masked_fill(fresh, kNoLevel)};
}

class GatedKeysFunction : public torch::autograd::Function<GatedKeysFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x_in, const Tensor& gate,
      const Tensor& decay, const Tensor& sums, const Tensor& levels, bool want_sums) {
    const Tensor x = x_in.stride(2) == 1 ? x_in : x_in.contiguous();
    const auto heads = gate.size(2);
    const Tensor keys = torch::empty(x.sizes(), x.options());
    const auto number = [&] { return torch::empty(gate.sizes(), gate.options()); };
    const Tensor norms = number(), level = number(), own = number(), kept = number();
    const Tensor made[] = {keys, norms, level, own, kept};
    if (const auto* const cuda = cuda_kernels(x)) {
      check_launch(cuda->gated_keys_forward(inputs<float>(x, gate, decay, sums, levels),
                       outputs<float>(made), cuda_stream(x)),
          "gated_keys_forward");
    } else {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gated_keys", [&] {
        const GatedInputs<scalar_t> in = inputs<scalar_t>(x, gate, decay, sums, levels);
        const auto out = outputs<scalar_t>(made);
        at::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
          gated_keys_forward_cpu(in, out, begin, end);
        });
      });
    }
    context->save_for_backward({x, sums, keys, norms, own, kept});
    context->mark_non_differentiable({level});
    if (!want_sums) return {keys, level};
    const auto by_head = keys.view({x.size(0), x.size(1), heads, x.size(2) / heads});
    return {keys, level, (by_head * norms.unsqueeze(3)).view(x.sizes())};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto kept = context->get_saved_variables();
    const Tensor &x = kept[0], &sums = kept[1], &norms = kept[3];
    const Tensor d_keys = d_out[0].defined() ? d_out[0].contiguous() : Tensor();
    const Tensor d_sums = d_out.size() > 2 && d_out[2].defined() ? d_out[2].contiguous() : Tensor();
    const Tensor dx = torch::empty(x.sizes(), x.options()), d_gate = torch::empty_like(norms),
                 d_decay = torch::empty_like(norms), d_before = torch::empty_like(sums);
    const Tensor made[] = {kept[2], norms, Tensor(), kept[4], kept[5]};
    const Tensor gradients[] = {d_keys, d_sums, dx, d_gate, d_decay, d_before};
    if (const auto* const cuda = cuda_kernels(x)) {
      check_launch(cuda->gated_keys_backward(inputs<float>(x, norms, {}, sums, {}),
                       outputs<float>(made), gradients_of<float>(gradients), cuda_stream(x)),
          "gated_keys_backward");
    } else {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gated_keys_backward", [&] {
        const auto in = inputs<scalar_t>(x, norms, {}, sums, {});
        const auto out = outputs<scalar_t>(made);
        const auto g = gradients_of<scalar_t>(gradients);
        at::parallel_for(0, x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
          gated_keys_backward_cpu(in, out, g, begin, end);
        });
      });
    }
    return {dx, d_gate, d_decay, d_before, Tensor(), Tensor()};
  }

 private:
  template <class Real> static Real* data(const Tensor& t) {
    return t.defined() ? t.data_ptr<Real>() : nullptr;
  }
  // `made` is keys, norms, levels, own, kept.
  template <class Real> static GatedOutputs<Real> outputs(const Tensor (&made)[5]) {
    return {data<Real>(made[0]), data<Real>(made[1]), data<Real>(made[2]), data<Real>(made[3]),
        data<Real>(made[4])};
  }
  // `of` is d_keys, d_sums, dx, d_gate, d_decay, d_before.
  template <class Real> static GatedGradients<Real> gradients_of(const Tensor (&of)[6]) {
    return {data<Real>(of[0]), data<Real>(of[1]), data<Real>(of[2]), data<Real>(of[3]),
        data<Real>(of[4]), data<Real>(of[5])};
  }
  // `gate` may be any tensor of its shape if only the shape is read.
  template <class Real>
  static GatedInputs<Real> inputs(const Tensor& x, const Tensor& gate, const Tensor& decay,
      const Tensor& sums, const Tensor& levels) {
    const auto heads = gate.size(2);
    return {x.size(0), x.size(1), heads, x.size(2) / heads, data<Real>(x), x.stride(0), x.stride(1),
        data<Real>(gate), data<Real>(decay), data<Real>(sums), data<Real>(levels)};
  }
};

/// Cumulative sums along the last dimension by shifts of 1, 2, 4, ... CUDA's cumsum is not
/// deterministic.
Tensor running_sums(Tensor x) {
  for (std::int64_t shift = 1; shift < x.size(-1); shift *= 2)
    x = x + at::constant_pad_nd(x.narrow(-1, 0, x.size(-1) - shift), {shift, 0});
  return x;
}

}  // namespace

GatedKeys gated_keys(const Tensor& x, const Tensor& gate, const Tensor& decay,
    const GatedSums& before, bool want_sums) {
  const auto type = x.scalar_type();
  const bool loops = in_host_memory(x) && (type == torch::kFloat32 || type == torch::kFloat64);
  if (gate.scalar_type() != type || (!loops && cuda_kernels(x) == nullptr))
    return gated_keys_chunks(x, gate, decay, before, want_sums);
  const auto in = carried_in(x, gate, before);
  const auto out = GatedKeysFunction::apply(x, gate.contiguous(), decay.contiguous(),
      in.sums.to(type).contiguous(), in.levels.contiguous(), want_sums);
  if (!want_sums) return {out[0], {}, {}};
  return {out[0], out[2], out[1]};
}

// Notation within a chunk: D_t is the sum of decay from the chunk's start to t. S and M are the
// sums and the level before the chunk.
//   level_t = max(M + D_t, max over s <= t of e_ts), e_ts = gate_s + D_t - D_s
//   sums_t = e^{M + D_t - level_t} S + sum over s <= t of e^{e_ts - level_t} x_s
// Levels get no gradient: no key depends on them.
GatedKeys gated_keys_chunks(const Tensor& x_in, const Tensor& gate_in, const Tensor& decay_in,
    const GatedSums& before_in, bool want_sums) {
  constexpr std::int64_t kChunk = 64;
  const auto rows = x_in.size(0), steps = x_in.size(1), heads = gate_in.size(2);
  const auto size = std::min(steps, kChunk), chunks = (steps + size - 1) / size,
             missing = chunks * size - steps;
  const auto exact = gate_in.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto cut = [&](const Tensor& y, double filling) {  // -> (B, heads, chunks, size, width)
    const auto whole = missing > 0 ? at::constant_pad_nd(y, {0, 0, 0, missing}, filling) : y;
    return whole.reshape({rows, chunks, size, heads, -1}).permute({0, 3, 1, 2, 4});
  };
  const auto before = carried_in(x_in, gate_in, before_in);
  const auto x = cut(x_in, 0);
  const auto gate = cut(gate_in.to(exact), kNoLevel).squeeze(4),
             decay =
                 running_sums(cut(decay_in.to(exact), 0).squeeze(4));  // (B, heads, chunks, size)

  const auto later = torch::ones({size, size}, gate.options().dtype(torch::kBool)).triu(1);
  const auto exponents = (gate.unsqueeze(3) + decay.unsqueeze(4) - decay.unsqueeze(3))
                             .masked_fill(later, kNoLevel);  // (B, heads, chunks, t, s)
  std::vector<Tensor> starts;                                // levels before each chunk
  Tensor levels;                                             // (B, heads, chunks, size)
  {
    const torch::NoGradGuard no_gradient;
    const auto within = exponents.amax(4);
    auto level = before.levels.to(exact);
    for (std::int64_t i = 0; i < chunks; ++i) {
      starts.push_back(level);
      level = torch::maximum(
          level + decay.select(2, i).select(2, size - 1), within.select(2, i).select(2, size - 1));
    }
    levels = torch::maximum(torch::stack(starts, 2).unsqueeze(3) + decay, within);
  }
  const auto own = (exponents - levels.unsqueeze(4)).exp().to(x.scalar_type()).matmul(x);
  const auto kept = (torch::stack(starts, 2).unsqueeze(3) + decay - levels)
                        .exp()
                        .to(x.scalar_type())
                        .unsqueeze(4);  // (B, heads, chunks, size, 1)
  std::vector<Tensor> carried;
  auto sum = before.sums.to(x.scalar_type()).view({rows, heads, -1});
  for (std::int64_t i = 0; i < chunks; ++i) {
    carried.push_back(sum);
    sum = kept.select(2, i).select(2, size - 1) * sum + own.select(2, i).select(2, size - 1);
  }
  const auto sums = (own + kept * torch::stack(carried, 2).unsqueeze(3))
                        .permute({0, 2, 3, 1, 4})
                        .reshape({rows, chunks * size, x_in.size(2)})
                        .narrow(1, 0, steps);
  const auto ones = torch::ones({heads}, sums.options().requires_grad(false));
  if (!want_sums) return {normalised(sums, ones), {}, {}};
  return {normalised(sums, ones), sums,
      levels.permute({0, 2, 3, 1}).reshape({rows, chunks * size, heads}).narrow(1, 0, steps)};
}

}  // namespace nn
