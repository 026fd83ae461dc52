#include "nn/persistent_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/gemm.h"
#include "nn/vector_math.h"

namespace nn {
namespace {

// Two tiles of scores and the slots' keys, values and gradients fit into a megabyte at width 64.
constexpr std::int64_t kRows = 128, kMostSlots = 384;

std::int64_t tile_of(std::int64_t slots) {
  const auto tiles = (slots + kMostSlots - 1) / kMostSlots;
  return (slots + tiles - 1) / tiles;
}

float max_of(const float* row, std::int64_t n) {
  float max = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : max)
  for (std::int64_t j = 0; j < n; ++j) max = row[j] > max ? row[j] : max;
  return max;
}

/// row = e^(row - max); its sum.
float exponentials(float* row, std::int64_t n, float max) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) {
    row[j] = vec::exp(row[j] - max);
    sum += row[j];
  }
  return sum;
}

void scale(float* row, std::int64_t n, float factor) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) row[j] *= factor;
}

}  // namespace

SlotAttention::SlotAttention(std::int64_t slots, std::int64_t width, std::int64_t stride)
    : slots_(slots),
      width_(width),
      stride_(stride),
      tile_(tile_of(slots)),
      scores_(static_cast<std::size_t>(kRows * tile_)) {}

void SlotAttention::forward(std::int64_t queries, const float* q, const float* keys,
                            const float* values, float* o, float* log_sums) {
  float max[kRows], sum[kRows];
  for (std::int64_t begin = 0; begin < queries; begin += kRows) {
    const std::int64_t rows = std::min(kRows, queries - begin);
    float* const out = o + begin * stride_;
    for (std::int64_t slot = 0; slot < slots_; slot += tile_) {
      const std::int64_t n = std::min(tile_, slots_ - slot);
      gemm(Op::plain, Op::transposed, rows, n, width_, 1, q + begin * stride_, stride_,
           keys + slot * width_, width_, 0, scores_.data(), n);
      for (std::int64_t i = 0; i < rows; ++i) {
        float* const row = scores_.data() + i * n;
        const float top = max_of(row, n);
        if (slot == 0) {
          max[i] = top;
          sum[i] = exponentials(row, n, top);
          continue;
        }
        if (top > max[i]) {
          const float shrink = vec::exp(max[i] - top);
          sum[i] *= shrink;
          scale(out + i * stride_, width_, shrink);
          max[i] = top;
        }
        sum[i] += exponentials(row, n, max[i]);
      }
      gemm(Op::plain, Op::plain, rows, width_, n, 1, scores_.data(), n, values + slot * width_,
           width_, slot == 0 ? 0 : 1, out, stride_);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      scale(out + i * stride_, width_, 1 / sum[i]);
      log_sums[begin + i] = max[i] + std::log(sum[i]);
    }
  }
}

void SlotAttention::backward(std::int64_t queries, const float* q, const float* keys,
                             const float* values, const float* o, const float* log_sums,
                             const float* d_o, float* dq, float* d_keys, float* d_values) {
  d_scores_.resize(scores_.size());
  dots_.resize(static_cast<std::size_t>(queries));
  for (std::int64_t i = 0; i < queries; ++i) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t c = 0; c < width_; ++c) dot += o[i * stride_ + c] * d_o[i * stride_ + c];
    dots_[static_cast<std::size_t>(i)] = dot;
  }
  for (std::int64_t slot = 0; slot < slots_; slot += tile_) {
    const std::int64_t n = std::min(tile_, slots_ - slot), at = slot * width_;
    for (std::int64_t begin = 0; begin < queries; begin += kRows) {
      const std::int64_t rows = std::min(kRows, queries - begin);
      const float *const q_rows = q + begin * stride_, *const d_rows = d_o + begin * stride_;
      const float add = begin == 0 ? 0 : 1;
      gemm(Op::plain, Op::transposed, rows, n, width_, 1, q_rows, stride_, keys + at, width_, 0,
           scores_.data(), n);
      gemm(Op::plain, Op::transposed, rows, n, width_, 1, d_rows, stride_, values + at, width_, 0,
           d_scores_.data(), n);
      for (std::int64_t i = 0; i < rows; ++i) {
        float *const p = scores_.data() + i * n, *const d = d_scores_.data() + i * n;
        const float log_sum = log_sums[begin + i], dot = dots_[static_cast<std::size_t>(begin + i)];
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j) {
          p[j] = vec::exp(p[j] - log_sum);
          d[j] = p[j] * (d[j] - dot);
        }
      }
      gemm(Op::transposed, Op::plain, n, width_, rows, 1, scores_.data(), n, d_rows, stride_, add,
           d_values + at, width_);
      gemm(Op::transposed, Op::plain, n, width_, rows, 1, d_scores_.data(), n, q_rows, stride_, add,
           d_keys + at, width_);
      gemm(Op::plain, Op::plain, rows, width_, n, 1, d_scores_.data(), n, keys + at, width_,
           slot == 0 ? 0 : 1, dq + begin * stride_, stride_);
    }
  }
}

}  // namespace nn
