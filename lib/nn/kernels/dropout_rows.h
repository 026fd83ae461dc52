#pragma once
// Forward and backward of one row of attention weights with dropout. Files that include this header
// need the compiler options of vector_math.h.

#include "nn/kernels/dropout_stream.h"
#include "nn/kernels/vector_math.h"

namespace nn::vec {

/// The factors of a row's slots from `first` on: each is 0 or `kept`.
struct RowDropout {
  DropoutStream::Row stream;
  std::uint32_t first;
  float kept;  ///< 1 / (1 - share)
  float operator()(std::int64_t i) const {
    return stream.drops(first + static_cast<std::uint32_t>(i)) ? 0.0f : kept;
  }
};
inline RowDropout row_dropout(
    const DropoutStream& stream, std::uint64_t head, std::int64_t query, std::int64_t first) {
  return {stream.row(head, static_cast<std::uint64_t>(query)), static_cast<std::uint32_t>(first),
      stream.scale()};
}

/// Replaces x by e^(x - max) times its dropout factor. Returns the sum before dropout.
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

/// Backward of a row of dropout(softmax(scale s)) v. On entry p is scale s and d is the gradient of
/// the dropped weights. On return p is the dropped weights and d is dL/ds. `log_sum` is the
/// log-sum-exp of the row; `dot` is output . dL/d output.
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
