#include "nn/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/gemm.h"
#include "nn/vector_math.h"

namespace nn {
namespace {

constexpr std::int64_t kRows =
    64;  // a block of scores, 64 x T, stays in the second-level cache up to T = 2,048

float max_of(const float* row, std::int64_t n) {
  float max = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t j = 0; j < n; ++j) max = row[j] > max ? row[j] : max;
  return max;
}

}  // namespace

CausalAttention::CausalAttention(std::int64_t steps, std::int64_t width, std::int64_t stride,
                                 std::int64_t o_stride, float scale)
    : steps_(steps),
      width_(width),
      stride_(stride),
      o_stride_(o_stride),
      rows_(std::min(kRows, steps)),
      scale_(scale),
      scores_(static_cast<std::size_t>(rows_ * steps)),
      d_scores_(scores_.size()) {}

void CausalAttention::forward(const float* q, const float* k, const float* v, float* o,
                              float* log_sums) {
  for (std::int64_t begin = 0; begin < steps_; begin += rows_) {
    const std::int64_t rows = std::min(rows_, steps_ - begin), seen = begin + rows;
    gemm(Op::plain, Op::transposed, rows, seen, width_, scale_, q + begin * stride_, stride_, k,
         stride_, 0, scores_.data(), seen);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row = scores_.data() + i * seen;
      const std::int64_t n = begin + i + 1;
      const float max = max_of(row, n);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < n; ++j) {
        row[j] = vec::exp(row[j] - max);
        sum += row[j];
      }
      const float inverse = 1 / sum;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) row[j] *= inverse;
      std::fill(row + n, row + seen, 0.0f);
      log_sums[begin + i] = max + std::log(sum);
    }
    gemm(Op::plain, Op::plain, rows, width_, seen, 1, scores_.data(), seen, v, stride_, 0,
         o + begin * o_stride_, o_stride_);
  }
}

void CausalAttention::backward(const float* q, const float* k, const float* v, const float* o,
                               const float* log_sums, const float* d_o, float* dq, float* dk,
                               float* dv) {
  // The last block of queries sees every key: walking backwards, it writes dk and dv, the others
  // add to their part.
  const std::int64_t last = (steps_ - 1) / rows_ * rows_;
  for (std::int64_t begin = last; begin >= 0; begin -= rows_) {
    const std::int64_t rows = std::min(rows_, steps_ - begin), seen = begin + rows;
    const float add = begin == last ? 0 : 1;
    const float* const d_rows = d_o + begin * o_stride_;
    gemm(Op::plain, Op::transposed, rows, seen, width_, scale_, q + begin * stride_, stride_, k,
         stride_, 0, scores_.data(), seen);
    gemm(Op::plain, Op::transposed, rows, seen, width_, 1, d_rows, o_stride_, v, stride_, 0,
         d_scores_.data(), seen);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const p = scores_.data() + i * seen;
      float* const d = d_scores_.data() + i * seen;
      const std::int64_t n = begin + i + 1;
      const float* const o_row = o + (begin + i) * o_stride_;
      const float* const do_row = d_rows + i * o_stride_;
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t c = 0; c < width_; ++c) dot += o_row[c] * do_row[c];
      const float log_sum = log_sums[begin + i];
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) {
        p[j] = vec::exp(p[j] - log_sum);
        d[j] = p[j] * (d[j] - dot) * scale_;
      }
      std::fill(p + n, p + seen, 0.0f);
      std::fill(d + n, d + seen, 0.0f);
    }
    gemm(Op::transposed, Op::plain, seen, width_, rows, 1, scores_.data(), seen, d_rows, o_stride_,
         add, dv, stride_);
    gemm(Op::transposed, Op::plain, seen, width_, rows, 1, d_scores_.data(), seen,
         q + begin * stride_, stride_, add, dk, stride_);
    gemm(Op::plain, Op::plain, rows, width_, seen, 1, d_scores_.data(), seen, k, stride_, 0,
         dq + begin * stride_, stride_);
  }
}

}  // namespace nn
