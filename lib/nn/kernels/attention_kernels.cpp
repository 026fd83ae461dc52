#include "nn/kernels/attention_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

// A block of scores, 64 x T, stays in the second-level cache up to T = 2,048.
constexpr std::int64_t kRows = 64;

}  // namespace

CausalAttention::CausalAttention(std::int64_t steps, float scale)
    : steps_(steps),
      rows_(std::min(kRows, steps)),
      scale_(scale),
      scores_(static_cast<std::size_t>(rows_ * steps)),
      d_scores_(scores_.size()) {}

void CausalAttention::forward(const Inputs& in, const MatrixOut& o, float* log_sums) {
  for (std::int64_t begin = 0; begin < steps_; begin += rows_) {
    const std::int64_t rows = std::min(rows_, steps_ - begin), seen = begin + rows;
    const MatrixOut scores(scores_.data(), rows, seen);
    product(in.q.block(begin, rows), transposed(in.k.block(0, seen)), scores, Into::fresh, scale_);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row = scores.row(i);
      const std::int64_t n = begin + i + 1;
      log_sums[begin + i] = vec::softmax(row, n);
      std::fill(row + n, row + seen, 0.0f);
    }
    product(scores, in.v.block(0, seen), o.block(begin, rows));
  }
}

void CausalAttention::backward(const Inputs& in, const float* log_sums, const Gradients& g) {
  // The last block of queries sees every key: walking backwards, it writes dk and dv, the others
  // add to their part.
  const std::int64_t last = (steps_ - 1) / rows_ * rows_;
  for (std::int64_t begin = last; begin >= 0; begin -= rows_) {
    const std::int64_t rows = std::min(rows_, steps_ - begin), seen = begin + rows;
    const Into into = begin == last ? g.keys : Into::sum;
    const Matrix q = in.q.block(begin, rows), k = in.k.block(0, seen), v = in.v.block(0, seen),
                 o = g.o.block(begin, rows), d_o = g.d_o.block(begin, rows);
    const MatrixOut p(scores_.data(), rows, seen), d(d_scores_.data(), rows, seen);
    // (rows, width) (width, seen) -> (rows, seen)
    product(q, transposed(k), p, Into::fresh, scale_);
    product(d_o, transposed(v), d);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t n = begin + i + 1;
      const float dot = vec::dot(o.row(i), d_o.row(i), o.columns);
      vec::softmax_backward(p.row(i), d.row(i), n, log_sums[begin + i], dot, scale_);
      std::fill(p.row(i) + n, p.row(i) + seen, 0.0f);
      std::fill(d.row(i) + n, d.row(i) + seen, 0.0f);
    }
    // (seen, rows) (rows, width) -> (seen, width), then (rows, seen) (seen, width) -> (rows, width)
    product(transposed(p), d_o, g.dv.block(0, seen), into);
    product(transposed(d), q, g.dk.block(0, seen), into);
    product(d, k, g.dq.block(begin, rows));
  }
}

}  // namespace nn
