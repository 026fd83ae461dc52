#include "nn/relative_attention_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/gemm.h"
#include "nn/vector_math.h"

namespace nn {
namespace {

constexpr std::int64_t kRows = 64;  // 64 x S scores stay in the second-level cache up to S = 2,048

void clear(HeadOut rows, std::int64_t n, std::int64_t width) {
  for (std::int64_t i = 0; i < n; ++i) std::fill_n(rows.row(i), width, 0.0f);
}

}  // namespace

RelativeHead::RelativeHead(const RelativeShape& shape) : shape_(shape) {
  const auto rows = std::min(kRows, shape.queries);
  scores_.resize(static_cast<std::size_t>(rows * shape.slots));
  products_.resize(static_cast<std::size_t>(rows * shape.slots));
}

std::int64_t RelativeHead::low(std::int64_t query) const {
  const std::int64_t own = shape_.slots - shape_.queries + query;
  return std::min(own, std::max(shape_.first, shape_.before < 0 ? 0 : own - shape_.before));
}

RelativeHead::Block RelativeHead::block(std::int64_t begin) const {
  Block block;
  block.begin = begin;
  block.rows = std::min(kRows, shape_.queries - begin);
  block.low = low(begin);
  block.end = shape_.slots - shape_.queries + begin + block.rows;
  block.first_r = block.low + shape_.queries - begin - block.rows;
  return block;
}

// As many rows of r as of k are needed, from first_r on. scores_: rows of seen() scaled scores;
// query a of the block finds its product with slot low + j at column j + rows - 1 - a of products_.
void RelativeHead::score(const RelativeInputs& in, const Block& block) {
  const auto& s = shape_;
  const std::int64_t n = block.seen();
  gemm(Op::plain, Op::transposed, block.rows, n, s.width, s.scale, in.content.row(block.begin),
       in.content.stride, in.k.row(block.low), in.k.stride, 0, scores_.data(), n);
  gemm(Op::plain, Op::transposed, block.rows, n, s.width, s.scale, in.position.row(block.begin),
       in.position.stride, in.r.row(block.first_r), in.r.stride, 0, products_.data(), n);
  for (std::int64_t a = 0; a < block.rows; ++a) {
    float* const row = scores_.data() + a * n;
    const std::int64_t skip = low(block.begin + a) - block.low, end = n - block.rows + a + 1;
    const float* const product = products_.data() + a * n + block.rows - 1 - a;
#pragma omp simd
    for (std::int64_t j = skip; j < end; ++j) row[j] += product[j];
  }
}

void RelativeHead::forward(const RelativeInputs& in, HeadOut out, float* log_sums) {
  for (std::int64_t begin = 0; begin < shape_.queries; begin += kRows) {
    const Block b = block(begin);
    const std::int64_t n = b.seen();
    score(in, b);
    for (std::int64_t a = 0; a < b.rows; ++a) {
      float* const row = scores_.data() + a * n;
      const std::int64_t skip = low(begin + a) - b.low, end = n - b.rows + a + 1;
      float max = row[skip];
#pragma omp simd reduction(max : max)
      for (std::int64_t j = skip; j < end; ++j) max = row[j] > max ? row[j] : max;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = skip; j < end; ++j) {
        row[j] = vec::exp(row[j] - max);
        sum += row[j];
      }
      const float inverse = 1 / sum;
#pragma omp simd
      for (std::int64_t j = skip; j < end; ++j) row[j] *= inverse;
      std::fill(row, row + skip, 0.0f);
      std::fill(row + end, row + n, 0.0f);
      log_sums[begin + a] = max + std::log(sum);
    }
    gemm(Op::plain, Op::plain, b.rows, shape_.width, n, 1, scores_.data(), n, in.v.row(b.low),
         in.v.stride, 0, out.row(begin), out.stride);
  }
}

void RelativeHead::backward(const RelativeInputs& in, const float* log_sums,
                            const RelativeGradients& g) {
  const auto& s = shape_;
  d_scores_.resize(scores_.size());
  clear(g.d_k, s.slots, s.width);
  clear(g.d_v, s.slots, s.width);
  clear(g.d_r, s.slots, s.width);
  for (std::int64_t begin = 0; begin < s.queries; begin += kRows) {
    const Block b = block(begin);
    const std::int64_t n = b.seen();
    score(in, b);
    gemm(Op::plain, Op::transposed, b.rows, n, s.width, 1, g.d_out.row(begin), g.d_out.stride,
         in.v.row(b.low), in.v.stride, 0, d_scores_.data(), n);
    std::fill_n(products_.data(), b.rows * n, 0.0f);
    for (std::int64_t a = 0; a < b.rows; ++a) {
      float* const p = scores_.data() + a * n;
      float* const d = d_scores_.data() + a * n;
      float* const askew = products_.data() + a * n + b.rows - 1 - a;
      const std::int64_t skip = low(begin + a) - b.low, end = n - b.rows + a + 1;
      const float *const out = g.out.row(begin + a), *const d_out = g.d_out.row(begin + a);
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t c = 0; c < s.width; ++c) dot += out[c] * d_out[c];
      const float log_sum = log_sums[begin + a];
#pragma omp simd
      for (std::int64_t j = skip; j < end; ++j) {
        p[j] = vec::exp(p[j] - log_sum);
        d[j] = p[j] * (d[j] - dot) * s.scale;
        askew[j] = d[j];
      }
      for (float* const row : {p, d}) {
        std::fill(row, row + skip, 0.0f);
        std::fill(row + end, row + n, 0.0f);
      }
    }
    gemm(Op::plain, Op::plain, b.rows, s.width, n, 1, d_scores_.data(), n, in.k.row(b.low),
         in.k.stride, 0, g.d_content.row(begin), g.d_content.stride);
    gemm(Op::plain, Op::plain, b.rows, s.width, n, 1, products_.data(), n, in.r.row(b.first_r),
         in.r.stride, 0, g.d_position.row(begin), g.d_position.stride);
    gemm(Op::transposed, Op::plain, n, s.width, b.rows, 1, d_scores_.data(), n,
         in.content.row(begin), in.content.stride, 1, g.d_k.row(b.low), g.d_k.stride);
    gemm(Op::transposed, Op::plain, n, s.width, b.rows, 1, scores_.data(), n, g.d_out.row(begin),
         g.d_out.stride, 1, g.d_v.row(b.low), g.d_v.stride);
    gemm(Op::transposed, Op::plain, n, s.width, b.rows, 1, products_.data(), n,
         in.position.row(begin), in.position.stride, 1, g.d_r.row(b.first_r), g.d_r.stride);
  }
}

}  // namespace nn
