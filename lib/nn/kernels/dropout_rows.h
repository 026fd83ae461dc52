#pragma once
// A row of attention weights with dropout, forward and backward. Files that include this are built
// as vector_math.h says.

#include <cstdint>

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/vector_math.h"

namespace nn::vec {

/// What a row's slots from `first` on are multiplied with: 0, or `kept`.
struct RowDropout {
  DropoutStream::Row stream;
  std::uint32_t first;
  float kept;  ///< 1 / (1 - share)
  float operator()(std::int64_t i) const {
    return stream.drops(first + static_cast<std::uint32_t>(i)) ? 0.0f : kept;
  }
};
inline RowDropout row_dropout(const DropoutStream& stream, std::uint64_t head, std::int64_t query,
                              std::int64_t first) {
  return {stream.row(head, static_cast<std::uint64_t>(query)), static_cast<std::uint32_t>(first),
          stream.scale()};
}

/// x becomes e^(x - max), those dropped 0 and the others kept; returns the sum of all as it was
/// before dropout.
inline float exponentiate_dropping(float* x, std::int64_t n, float max, const RowDropout& dropout) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = exp(x[i] - max);
    sum += e;
    x[i] = e * dropout(i);
  }
  return sum;
}

inline void drop(float* x, std::int64_t n, const RowDropout& dropout) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= dropout(i);
}

/// A row of dropout(softmax(scale s)) v: p comes as scale s and becomes what the values are
/// weighted with, d comes as the gradient of that and becomes dL/ds. `log_sum`: softmax's; `dot`:
/// output . dL/d output.
inline void softmax_backward_dropping(float* p, float* d, std::int64_t n, float log_sum, float dot,
                                      float scale, const RowDropout& dropout) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float weight = exp(p[i] - log_sum), factor = dropout(i);
    p[i] = weight * factor;
    d[i] = weight * (d[i] * factor - dot) * scale;
  }
}

}  // namespace nn::vec
