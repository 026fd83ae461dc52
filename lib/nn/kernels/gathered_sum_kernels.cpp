#include "nn/kernels/gathered_sum_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace nn {

template <class Real>
void gathered_sum_forward(
    const GatheredSum<Real>& in, std::int64_t begin, std::int64_t end, Real* y) {
  for (std::int64_t t = begin; t < end; ++t) {
    Real* const sum = y + t * in.width;
    std::fill_n(sum, in.width, Real(0));
    for (std::int64_t e = t * in.entries; e < (t + 1) * in.entries; ++e)
      vec::add_scaled(in.weights[e], in.values + in.rows[e] * in.width, in.width, sum);
  }
}

template <class Real>
void gathered_sum_weight_gradient(const GatheredSum<Real>& in, const Real* d_y, std::int64_t begin,
    std::int64_t end, Real* d_weights) {
  for (std::int64_t t = begin; t < end; ++t) {
    const Real* const of_sum = d_y + t * in.width;
    for (std::int64_t e = t * in.entries; e < (t + 1) * in.entries; ++e)
      d_weights[e] = vec::dot(of_sum, in.values + in.rows[e] * in.width, in.width);
  }
}

template <class Real>
void gathered_sum_value_gradient(const GatheredSum<Real>& in, const Real* d_y,
    const std::int64_t* order, const std::int64_t* starts, std::int64_t begin, std::int64_t end,
    Real* d_values) {
  for (std::int64_t used = begin; used < end; ++used) {
    Real* const row = d_values + used * in.width;
    for (auto at = starts[used]; at < starts[used + 1]; ++at) {
      const auto e = order[at];
      vec::add_scaled(in.weights[e], d_y + e / in.entries * in.width, in.width, row);
    }
  }
}

#define TESSERA_GATHERED_SUM(Real)                                                                 \
  template void gathered_sum_forward(const GatheredSum<Real>&, std::int64_t, std::int64_t, Real*); \
  template void gathered_sum_weight_gradient(                                                      \
      const GatheredSum<Real>&, const Real*, std::int64_t, std::int64_t, Real*);                   \
  template void gathered_sum_value_gradient(const GatheredSum<Real>&, const Real*,                 \
      const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t, Real*);
TESSERA_GATHERED_SUM(float)
TESSERA_GATHERED_SUM(double)
#undef TESSERA_GATHERED_SUM

}  // namespace nn
