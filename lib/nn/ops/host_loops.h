#pragma once
// How operators call the kernels' loops over raw numbers on the CPU.

#include "nn/base/cuda.h"

namespace nn {

/// Returns float32 for bfloat16 and half, else x's type.
inline torch::ScalarType accumulation_type(const torch::Tensor& x) {
  return x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

/// Returns whether the loops take x: float32 or float64 in host memory.
inline bool loops_take(const torch::Tensor& x) {
  return in_host_memory(x) && x.scalar_type() == accumulation_type(x);
}

/// Return x's data; null if x is undefined.
template <class Real> const Real* data_of(const torch::Tensor& x) {
  return x.defined() ? x.const_data_ptr<Real>() : nullptr;
}
template <class Real> Real* mutable_data(const torch::Tensor& x) {
  return x.defined() ? x.data_ptr<Real>() : nullptr;
}

/// Calls loop(Real(), begin, end) for ranges of [0, n) in all threads; Real is the type of x.
template <class Loop> void in_ranges(const torch::Tensor& x, std::int64_t n, const Loop& loop) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "in_ranges", [&] {
    at::parallel_for(
        0, n, 1, [&](std::int64_t begin, std::int64_t end) { loop(scalar_t(), begin, end); });
  });
}

/// Calls f(Real(), i) for each i of [0, n) in all threads.
template <class F> void in_threads(const torch::Tensor& x, std::int64_t n, const F& f) {
  in_ranges(x, n, [&](auto real, std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) f(real, i);
  });
}

}  // namespace nn
