#include "nn/leaky.h"

#include "nn/leaky_kernels.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

LeakyShape shape_of(const Tensor& x, std::int64_t steps, std::int64_t heads) {
  return {steps, heads, x.size(2) / heads, x.stride(1)};
}

template <class Real>
const Real* row_of(const Tensor& t, std::int64_t row) {
  return t.defined() ? t.const_data_ptr<Real>() + row * t.stride(0) : nullptr;
}

template <class Real>
Real* mutable_row(const Tensor& t, std::int64_t row) {
  return t.defined() ? t.data_ptr<Real>() + row * t.stride(0) : nullptr;
}

/// Rows whose channels follow each other; a slice of a wider matrix product is one.
Tensor with_dense_rows(const Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

void each_row(std::int64_t rows, const std::function<void(std::int64_t)>& work) {
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) work(row);
  });
}

class KeysFunction : public torch::autograd::Function<KeysFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x_in, const Tensor& decay,
                               const Tensor& scale, const Tensor& before_in, bool want_sums) {
    const Tensor x = with_dense_rows(x_in);
    const Tensor before = before_in.numel() > 0 ? before_in.contiguous() : Tensor();
    const auto shape = shape_of(x, x.size(1), decay.size(0));
    const Tensor keys = torch::empty(x.sizes(), x.options());
    const Tensor norms = torch::empty({x.size(0), x.size(1), shape.heads}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "leaky_keys", [&] {
      const auto* const decays = decay.const_data_ptr<scalar_t>();
      const auto* const scales = scale.const_data_ptr<scalar_t>();
      each_row(x.size(0), [&](std::int64_t row) {
        leaky_keys_forward<scalar_t>(
            shape, row_of<scalar_t>(x, row), decays, scales, row_of<scalar_t>(before, row),
            mutable_row<scalar_t>(keys, row), mutable_row<scalar_t>(norms, row));
      });
    });
    context->save_for_backward({decay, scale, before, keys, norms});
    if (!want_sums) return {keys};
    const auto by_head = keys.view({x.size(0), x.size(1), shape.heads, shape.width});
    return {keys, (by_head * (norms / scale).unsqueeze(3)).view(x.sizes())};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto kept = context->get_saved_variables();
    const Tensor &decay = kept[0], &scale = kept[1], &before = kept[2], &keys = kept[3],
                 &norms = kept[4];
    const Tensor d_keys = d_out[0].defined() ? d_out[0].contiguous() : Tensor();
    const Tensor d_sums = d_out.size() > 1 && d_out[1].defined() ? d_out[1].contiguous() : Tensor();
    const auto rows = keys.size(0), heads = decay.size(0);
    const auto shape = shape_of(keys, keys.size(1), heads);
    const Tensor dx = torch::empty_like(keys);
    const Tensor d_before = before.defined() ? torch::empty_like(before) : Tensor();
    // Rows add to sums of their own, so that any number of threads gives the same bytes.
    const Tensor d_decay = torch::zeros({rows, heads}, keys.options());
    const Tensor d_scale = torch::zeros({rows, heads}, keys.options());
    AT_DISPATCH_FLOATING_TYPES(keys.scalar_type(), "leaky_keys_backward", [&] {
      each_row(rows, [&](std::int64_t row) {
        leaky_keys_backward<scalar_t>(
            shape, row_of<scalar_t>(keys, row), row_of<scalar_t>(norms, row),
            decay.const_data_ptr<scalar_t>(), scale.const_data_ptr<scalar_t>(),
            row_of<scalar_t>(before, row), row_of<scalar_t>(d_keys, row),
            row_of<scalar_t>(d_sums, row), mutable_row<scalar_t>(dx, row),
            mutable_row<scalar_t>(d_before, row), mutable_row<scalar_t>(d_decay, row),
            mutable_row<scalar_t>(d_scale, row));
      });
    });
    return {dx, d_decay.sum(0), d_scale.sum(0), d_before, Tensor()};
  }
};

class ValuesFunction : public torch::autograd::Function<ValuesFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x_in, const Tensor& mix,
                        const Tensor& scale) {
    const Tensor x = with_dense_rows(x_in);
    const auto steps = x.size(1) - 1;
    const auto shape = shape_of(x, steps, mix.size(0));
    const Tensor values = torch::empty({x.size(0), steps, x.size(2)}, x.options());
    const Tensor norms = torch::empty({x.size(0), steps, shape.heads}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mixed_values", [&] {
      each_row(x.size(0), [&](std::int64_t row) {
        mixed_values_forward<scalar_t>(
            shape, row_of<scalar_t>(x, row), mix.const_data_ptr<scalar_t>(),
            scale.const_data_ptr<scalar_t>(), mutable_row<scalar_t>(values, row),
            mutable_row<scalar_t>(norms, row));
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
    auto shape = shape_of(x, values.size(1), heads);
    // dx has x's stride only where x is contiguous.
    const Tensor dense = x.contiguous();
    shape.x_stride = dense.stride(1);
    const Tensor dx = torch::empty_like(dense);
    const Tensor d_mix = torch::zeros({rows, heads}, x.options());
    const Tensor d_scale = torch::zeros({rows, heads}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mixed_values_backward", [&] {
      each_row(rows, [&](std::int64_t row) {
        mixed_values_backward<scalar_t>(
            shape, row_of<scalar_t>(dense, row), row_of<scalar_t>(values, row),
            row_of<scalar_t>(norms, row), mix.const_data_ptr<scalar_t>(),
            scale.const_data_ptr<scalar_t>(), row_of<scalar_t>(d_values, row),
            mutable_row<scalar_t>(dx, row), mutable_row<scalar_t>(d_mix, row),
            mutable_row<scalar_t>(d_scale, row));
      });
    });
    return {dx, d_mix.sum(0), d_scale.sum(0)};
  }
};

/// (heads) -> (d), each head's number for all its channels.
Tensor spread(const Tensor& by_head, std::int64_t d) {
  return by_head.repeat_interleave(d / by_head.size(0));
}

/// After the pass of distance 2^i, each place holds the sum of its last 2^(i+1) terms.
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
  if (x.is_cpu()) {
    const auto out = KeysFunction::apply(x, decay, scale,
                                         before.defined() ? before : x.new_empty({0}), want_sums);
    return {out[0], want_sums ? out[1] : Tensor()};
  }
  const auto sums = shifted_sums(x, decay, before);
  return {normalised(sums, scale), want_sums ? sums : Tensor()};
}

Tensor mixed_values(const Tensor& x, const Tensor& mix, const Tensor& scale) {
  if (x.is_cpu()) return ValuesFunction::apply(x, mix, scale);
  const auto steps = x.size(1) - 1;
  const auto share = spread(mix, x.size(2));
  return normalised(x.narrow(1, 0, steps) * share + x.narrow(1, 1, steps) * (1 - share), scale);
}

}  // namespace nn
