#include "nn/layers/band_attention.h"

#include <algorithm>

namespace nn {
namespace {

using torch::Tensor;

/// Mask (window, 2 window): what the queries of a block see of the previous block and of their own.
Tensor two_blocks_mask(std::int64_t window, const torch::TensorOptions& options) {
  const auto places = torch::TensorOptions(torch::kInt64).device(options.device());
  const auto query = torch::arange(window, 2 * window, places).unsqueeze(1),
             distance = query - torch::arange(2 * window, places).unsqueeze(0);
  return torch::zeros({window, 2 * window}, options.requires_grad(false))
      .masked_fill_((distance < 0) | (distance >= window), kHidden);
}

}  // namespace

Tensor attend_band(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t window,
                   double dropout, const Scores& scores) {
  const auto steps = q.size(2), first = std::min(window, steps);
  Visibility triangle;
  triangle.causal = true;
  const auto begin = attend(q.narrow(2, 0, first), k.narrow(2, 0, first), v.narrow(2, 0, first),
                            triangle, dropout, scores);
  if (steps <= window) return begin;

  const auto rows = q.size(0), heads = q.size(1), blocks = (steps + window - 1) / window,
             missing = blocks * window - steps;
  const auto cut = [&](const Tensor& x) {  // returns (B, heads, blocks, window, width)
    const auto whole = missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, missing}) : x;
    return whole.reshape({rows, heads, blocks, window, x.size(3)});
  };
  const auto later = [&](const Tensor& x) { return x.narrow(2, 1, blocks - 1); };
  const auto pairs_of_blocks = [&](const Tensor& x) {
    const auto all = cut(x);
    return torch::cat({all.narrow(2, 0, blocks - 1), later(all)}, 3).flatten(1, 2);
  };
  Visibility near;
  near.mask = two_blocks_mask(window, q.options());
  const auto rest = attend(later(cut(q)).flatten(1, 2), pairs_of_blocks(k), pairs_of_blocks(v),
                           near, dropout, scores)
                        .reshape({rows, heads, (blocks - 1) * window, v.size(3)})
                        .narrow(2, 0, steps - window);
  return torch::cat({begin, rest}, 2);
}

}  // namespace nn
