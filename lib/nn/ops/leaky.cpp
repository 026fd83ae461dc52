#include "nn/ops/leaky.h"

#include "nn/base/cuda.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Real> const Real* data_of(const Tensor& t) {
  return t.defined() ? t.const_data_ptr<Real>() : nullptr;
}

template <class Real> Real* mutable_data(const Tensor& t) {
  return t.defined() ? t.data_ptr<Real>() : nullptr;
}

/// Returns rows with contiguous channels. A slice of a wider matrix product already has them.
Tensor with_dense_rows(const Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

// Calls f(begin, end) for ranges of rows in all threads.
template <class F> void each_row(std::int64_t rows, const F& f) { at::parallel_for(0, rows, 1, f); }

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
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "leaky_keys", [&] {
        const auto in = inputs<scalar_t>(x, decay, scale, before);
        auto *const out = keys.data_ptr<scalar_t>(), *const lengths = norms.data_ptr<scalar_t>();
        each_row(rows, [&](std::int64_t begin, std::int64_t end) {
          leaky_keys_forward_cpu(in, out, lengths, begin, end);
        });
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
      AT_DISPATCH_FLOATING_TYPES(keys.scalar_type(), "leaky_keys_backward", [&] {
        const auto in = inputs<scalar_t>(keys, decay, scale, before);
        const auto *const k = data_of<scalar_t>(keys), *const lengths = data_of<scalar_t>(norms);
        const auto g = gradients<scalar_t>(d_keys, d_sums, out, {});
        each_row(rows, [&](std::int64_t begin, std::int64_t end) {
          leaky_keys_backward_cpu(in, k, lengths, g, begin, end);
        });
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
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mixed_values", [&] {
      const auto in = inputs<scalar_t>(x, mix, scale);
      auto *const out = values.data_ptr<scalar_t>(), *const lengths = norms.data_ptr<scalar_t>();
      each_row(rows, [&](std::int64_t begin, std::int64_t end) {
        mixed_values_forward_cpu(in, out, lengths, begin, end);
      });
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
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mixed_values_backward", [&] {
      const auto in = inputs<scalar_t>(x, mix, scale);
      const auto *const v = data_of<scalar_t>(values), *const lengths = data_of<scalar_t>(norms);
      const MixedGradients<scalar_t> g{data_of<scalar_t>(d_values), mutable_data<scalar_t>(dx),
          mutable_data<scalar_t>(d_mix), mutable_data<scalar_t>(d_scale)};
      each_row(rows, [&](std::int64_t begin, std::int64_t end) {
        mixed_values_backward_cpu(in, v, lengths, g, begin, end);
      });
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

/// Whether the CPU loops support the type: bfloat16 is unsupported.
bool loops_take(const Tensor& x) {
  return in_host_memory(x) &&
         (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kFloat64);
}

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

}  // namespace nn
