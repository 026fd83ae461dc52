#include "nn/ops/leaky.h"

#include "nn/ops/host_loops.h"

namespace nn {
namespace {

/// Returns rows with contiguous channels. A slice of a wider matrix product already has them.
Tensor with_dense_rows(const Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

class KeysFunction : public torch::autograd::Function<KeysFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x_in, const Tensor& decay,
      const Tensor& scale, const Tensor& before_in, bool want_sums) {
    const Tensor x = with_dense_rows(x_in);
    const Tensor before = before_in.numel() > 0 ? before_in.contiguous() : Tensor();
    const auto rows = x.size(0), steps = x.size(1), heads = decay.size(0);
    const Tensor keys = torch::empty(x.sizes(), x.options());
    const Tensor norms = torch::empty({rows, steps, heads}, x.options());
    if (const auto* const cuda = cuda_kernels(x)) {
      check_launch(cuda->leaky_keys_forward(inputs<float>(x, decay, scale, before),
                       keys.data_ptr<float>(), norms.data_ptr<float>(), cuda_stream(x)),
          "leaky_keys_forward");
    } else {
      in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
        leaky_keys_forward_cpu(inputs<Real>(x, decay, scale, before), keys.data_ptr<Real>(),
            norms.data_ptr<Real>(), row);
      });
    }
    context->save_for_backward({decay, scale, before, keys, norms});
    if (!want_sums) return {keys};
    const auto by_head = keys.view({rows, steps, heads, x.size(2) / heads});
    return {keys, (by_head * (norms / scale).unsqueeze(3)).view(x.sizes())};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto kept = context->get_saved_variables();
    const Tensor &decay = kept[0], &scale = kept[1], &before = kept[2], &keys = kept[3],
                 &norms = kept[4];
    const Tensor d_keys = d_out[0].defined() ? d_out[0].contiguous() : Tensor();
    const Tensor d_sums = d_out.size() > 1 && d_out[1].defined() ? d_out[1].contiguous() : Tensor();
    const auto rows = keys.size(0), heads = decay.size(0);
    const Tensor dx = torch::empty_like(keys);
    const Tensor d_before = before.defined() ? torch::empty_like(before) : Tensor();
    // Each row has its own sums, so that the number of threads does not change the result.
    const Tensor d_decay = torch::empty({rows, heads}, keys.options()),
                 d_scale = torch::empty({rows, heads}, keys.options());
    const Tensor out[] = {dx, d_before, d_decay, d_scale};
    if (const auto* const cuda = cuda_kernels(keys)) {
      const Tensor work = torch::empty_like(norms);
      check_launch(cuda->leaky_keys_backward(inputs<float>(keys, decay, scale, before),
                       keys.const_data_ptr<float>(), norms.const_data_ptr<float>(),
                       gradients<float>(d_keys, d_sums, out, work), cuda_stream(keys)),
          "leaky_keys_backward");
    } else {
      in_threads(keys, keys.size(0), [&]<class Real>(Real, std::int64_t row) {
        leaky_keys_backward_cpu(inputs<Real>(keys, decay, scale, before), data_of<Real>(keys),
            data_of<Real>(norms), gradients<Real>(d_keys, d_sums, out, {}), row);
      });
    }
    return {dx, d_decay.sum(0), d_scale.sum(0), d_before, Tensor()};
  }

 private:
  // `out` is dx, d_before, d_decay, d_scale.
  template <class Real>
  static LeakyGradients<Real> gradients(
      const Tensor& d_keys, const Tensor& d_sums, const Tensor (&out)[4], const Tensor& work) {
    return {data_of<Real>(d_keys), data_of<Real>(d_sums), mutable_data<Real>(out[0]),
        mutable_data<Real>(out[1]), mutable_data<Real>(out[2]), mutable_data<Real>(out[3]),
        mutable_data<Real>(work)};
  }
  // x is (B, T, d). keys may replace it if only the shape is read.
  template <class Real>
  static LeakyInputs<Real> inputs(
      const Tensor& x, const Tensor& decay, const Tensor& scale, const Tensor& before) {
    const auto heads = decay.size(0);
    return {x.size(0), x.size(1), heads, x.size(2) / heads, data_of<Real>(x), x.stride(0),
        x.stride(1), data_of<Real>(decay), data_of<Real>(scale), data_of<Real>(before)};
  }
};

class ValuesFunction : public torch::autograd::Function<ValuesFunction> {
 public:
  static Tensor forward(
      AutogradContext* context, const Tensor& x_in, const Tensor& mix, const Tensor& scale) {
    const Tensor x = with_dense_rows(x_in);
    const auto rows = x.size(0), steps = x.size(1) - 1;
    const Tensor values = torch::empty({rows, steps, x.size(2)}, x.options());
    const Tensor norms = torch::empty({rows, steps, mix.size(0)}, x.options());
    in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
      mixed_values_forward_cpu(
          inputs<Real>(x, mix, scale), values.data_ptr<Real>(), norms.data_ptr<Real>(), row);
    });
    context->save_for_backward({x, mix, scale, values, norms});
    return values;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto kept = context->get_saved_variables();
    const Tensor &x = kept[0], &mix = kept[1], &scale = kept[2], &values = kept[3],
                 &norms = kept[4];
    const Tensor d_values = d_out[0].contiguous();
    const auto rows = x.size(0), heads = mix.size(0);
    const Tensor dx = torch::empty(x.sizes(), x.options());
    const Tensor d_mix = torch::empty({rows, heads}, x.options()),
                 d_scale = torch::empty({rows, heads}, x.options());
    in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
      const MixedGradients<Real> g{data_of<Real>(d_values), mutable_data<Real>(dx),
          mutable_data<Real>(d_mix), mutable_data<Real>(d_scale)};
      mixed_values_backward_cpu(
          inputs<Real>(x, mix, scale), data_of<Real>(values), data_of<Real>(norms), g, row);
    });
    return {dx, d_mix.sum(0), d_scale.sum(0)};
  }

 private:
  // x is (B, T + 1, d).
  template <class Real>
  static MixedInputs<Real> inputs(const Tensor& x, const Tensor& mix, const Tensor& scale) {
    const auto heads = mix.size(0);
    return {x.size(0), x.size(1) - 1, heads, x.size(2) / heads, data_of<Real>(x), x.stride(0),
        x.stride(1), data_of<Real>(mix), data_of<Real>(scale)};
  }
};

/// Repeats each head's number for all its channels: (heads) -> (d).
Tensor spread(const Tensor& by_head, std::int64_t d) {
  return by_head.repeat_interleave(d / by_head.size(0));
}

/// After the pass with distance 2^i, each position holds the sum of its last 2^(i+1) terms.
Tensor shifted_sums(const Tensor& x, const Tensor& decay, const Tensor& before) {
  auto sums = before.defined() ? torch::cat({before.unsqueeze(1), x}, 1) : x;
  auto factor = spread(decay, x.size(2));
  const auto steps = sums.size(1);
  for (std::int64_t distance = 1; distance < steps; distance *= 2) {
    const auto earlier = sums.narrow(1, 0, steps - distance) * factor;
    sums = torch::cat(
        {sums.narrow(1, 0, distance), sums.narrow(1, distance, steps - distance) + earlier}, 1);
    factor = factor * factor;
  }
  return before.defined() ? sums.narrow(1, 1, steps - 1) : sums;
}

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
    const Tensor x = with_dense_rows(x_in);
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
      in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
        gated_keys_forward_cpu(
            inputs<Real>(x, gate, decay, sums, levels), outputs<Real>(made), row);
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
      in_threads(x, x.size(0), [&]<class Real>(Real, std::int64_t row) {
        gated_keys_backward_cpu(inputs<Real>(x, norms, {}, sums, {}), outputs<Real>(made),
            gradients_of<Real>(gradients), row);
      });
    }
    return {dx, d_gate, d_decay, d_before, Tensor(), Tensor()};
  }

 private:
  // `made` is keys, norms, levels, own, kept.
  template <class Real> static GatedOutputs<Real> outputs(const Tensor (&made)[5]) {
    return {mutable_data<Real>(made[0]), mutable_data<Real>(made[1]), mutable_data<Real>(made[2]),
        mutable_data<Real>(made[3]), mutable_data<Real>(made[4])};
  }
  // `of` is d_keys, d_sums, dx, d_gate, d_decay, d_before.
  template <class Real> static GatedGradients<Real> gradients_of(const Tensor (&of)[6]) {
    return {mutable_data<Real>(of[0]), mutable_data<Real>(of[1]), mutable_data<Real>(of[2]),
        mutable_data<Real>(of[3]), mutable_data<Real>(of[4]), mutable_data<Real>(of[5])};
  }
  // `gate` may be any tensor of its shape if only the shape is read.
  template <class Real>
  static GatedInputs<Real> inputs(const Tensor& x, const Tensor& gate, const Tensor& decay,
      const Tensor& sums, const Tensor& levels) {
    const auto heads = gate.size(2);
    return {x.size(0), x.size(1), heads, x.size(2) / heads, mutable_data<Real>(x), x.stride(0),
        x.stride(1), mutable_data<Real>(gate), mutable_data<Real>(decay), mutable_data<Real>(sums),
        mutable_data<Real>(levels)};
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

Tensor normalised(const Tensor& x, const Tensor& scale) {
  auto sizes = x.sizes().vec();
  sizes.back() = scale.size(0);
  sizes.push_back(x.size(-1) / scale.size(0));
  const auto by_head = x.reshape(sizes);
  const auto norm = (by_head.square().sum(-1, /*keepdim=*/true) + kNormFloor).sqrt();
  return (by_head * (scale.unsqueeze(1) / norm)).view(x.sizes());
}

LeakyKeys leaky_keys(const Tensor& x, const Tensor& decay, const Tensor& scale,
    const Tensor& before, bool want_sums) {
  if (loops_take(x) || cuda_kernels(x) != nullptr) {
    const auto out = KeysFunction::apply(
        x, decay, scale, before.defined() ? before : x.new_empty({0}), want_sums);
    return {out[0], want_sums ? out[1] : Tensor()};
  }
  const auto sums = shifted_sums(x, decay, before);
  return {normalised(sums, scale), want_sums ? sums : Tensor()};
}

Tensor mixed_values(const Tensor& x, const Tensor& mix, const Tensor& scale) {
  if (loops_take(x)) return ValuesFunction::apply(x, mix, scale);
  const auto steps = x.size(1) - 1;
  const auto share = spread(mix, x.size(2));
  return normalised(x.narrow(1, 0, steps) * share + x.narrow(1, 1, steps) * (1 - share), scale);
}

GatedKeys gated_keys(const Tensor& x, const Tensor& gate, const Tensor& decay,
    const GatedSums& before, bool want_sums) {
  const auto type = x.scalar_type();
  if (gate.scalar_type() != type || (!loops_take(x) && cuda_kernels(x) == nullptr))
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
  const auto exact = accumulation_type(gate_in);
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
