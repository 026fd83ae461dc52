#pragma once
// Helpers of recurrences with a matrix for each head: addresses, and loops over heads.

#include "nn/base/torch.h"

namespace nn {

/// Calls f(row, head) for steps (B, T, heads, ...), in all threads.
template <class F>
void each_head(const torch::Tensor& steps, F f) {
  const auto heads = steps.size(2);
  at::parallel_for(0, steps.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i / heads, i % heads);
  });
}

/// Returns a head's matrix of a row in states (B, heads, d_key, d_value).
template <class Float>
Float* matrix_of(const torch::Tensor& states, std::int64_t row, std::int64_t head) {
  return states.data_ptr<Float>() + row * states.stride(0) + head * states.stride(1);
}

/// Returns a head's part of a row in steps (B, T, heads, ...).
template <class Float>
Float* part_of(const torch::Tensor& steps, std::int64_t row, std::int64_t head) {
  return steps.data_ptr<Float>() + row * steps.stride(0) + head * steps.stride(2);
}

/// Returns cumulative sums over dimension 3 of 5, by shifts of 1, 2, 4, ..., because CUDA's cumsum
/// may not be bit-reproducible.
inline torch::Tensor sums_so_far(torch::Tensor x) {
  for (std::int64_t shift = 1; shift < x.size(3); shift *= 2)
    x = x + at::constant_pad_nd(x.narrow(3, 0, x.size(3) - shift), {0, 0, shift, 0});
  return x;
}

/// Divides steps (B, T, heads, width) into chunks, zero-padding the last: (B, heads, chunks, chunk,
/// width).
inline torch::Tensor in_chunks(const torch::Tensor& x, std::int64_t chunk) {
  const auto steps = x.size(1), chunks = (steps + chunk - 1) / chunk,
             missing = chunks * chunk - steps;
  const auto whole = missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, 0, 0, missing}) : x;
  return whole.reshape({x.size(0), chunks, chunk, x.size(2), x.size(3)}).permute({0, 3, 1, 2, 4});
}

/// Inverts in_chunks and returns the first `steps` steps.
inline torch::Tensor from_chunks(const torch::Tensor& x, std::int64_t steps) {
  return x.permute({0, 2, 3, 1, 4})
      .reshape({x.size(0), x.size(2) * x.size(3), x.size(1), x.size(4)})
      .narrow(1, 0, steps);
}

}  // namespace nn
