#include "nn/kernels/relative_attention_kernels.h"

#include <algorithm>

#include "nn/kernels/dropout_rows.h"
#include "nn/kernels/row_math.h"

namespace nn {
namespace {

constexpr std::int64_t kRows = 64;  // 64 x S scores fit the second-level cache up to S = 2,048

void clear(const MatrixOut& m) {
  for (std::int64_t i = 0; i < m.rows; ++i) std::fill_n(m.row(i), m.columns, 0.0f);
}

// Clears a row (n) outside [begin, end).
void clear_outside(float* row, std::int64_t begin, std::int64_t end, std::int64_t n) {
  std::fill(row, row + begin, 0.0f);
  std::fill(row + end, row + n, 0.0f);
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

RelativeHead::Range RelativeHead::seen_by(const Block& block, std::int64_t a) const {
  return {low(block.begin + a) - block.low, block.seen() - block.rows + a + 1};
}

// A block needs as many rows of r as of k, from first_r on. scores_ holds rows of seen() scaled
// scores. The product of the block's query a with slot low + j is in column j + rows - 1 - a of
// products_.
void RelativeHead::score(const RelativeInputs& in, const Block& block) {
  const std::int64_t n = block.seen();
  // (rows, width) (width, n) -> (rows, n), both
  const MatrixOut scores(scores_.data(), block.rows, n), products(products_.data(), block.rows, n);
  product(in.content.block(block.begin, block.rows), transposed(in.k.block(block.low, n)), scores,
      Into::fresh, shape_.scale);
  product(in.position.block(block.begin, block.rows), transposed(in.r.block(block.first_r, n)),
      products, Into::fresh, shape_.scale);
  for (std::int64_t a = 0; a < block.rows; ++a) {
    const Range seen = seen_by(block, a);
    const float* const askew = products.row(a) + block.rows - 1 - a;
    vec::add(askew + seen.begin, seen.size(), scores.row(a) + seen.begin);
  }
}

void RelativeHead::forward(const RelativeInputs& in, const MatrixOut& out, float* log_sums) {
  for (std::int64_t begin = 0; begin < shape_.queries; begin += kRows) {
    const Block b = block(begin);
    const std::int64_t n = b.seen();
    score(in, b);
    const MatrixOut weights(scores_.data(), b.rows, n);
    for (std::int64_t a = 0; a < b.rows; ++a) {
      const Range seen = seen_by(b, a);
      float* const row = weights.row(a) + seen.begin;
      log_sums[begin + a] = vec::softmax(row, seen.size());
      if (shape_.dropout.share() > 0)
        vec::drop(row, seen.size(),
            vec::row_dropout(shape_.dropout, shape_.head, begin + a, b.low + seen.begin));
      clear_outside(weights.row(a), seen.begin, seen.end, n);
    }
    product(weights, in.v.block(b.low, n), out.block(begin, b.rows));  // (rows, n) (n, width)
  }
}

void RelativeHead::backward(
    const RelativeInputs& in, const float* log_sums, const RelativeGradients& g) {
  d_scores_.resize(scores_.size());
  for (const MatrixOut& m : {g.d_k, g.d_v, g.d_r}) clear(m);
  for (std::int64_t begin = 0; begin < shape_.queries; begin += kRows) {
    const Block b = block(begin);
    const std::int64_t n = b.seen();
    score(in, b);
    const Matrix d_out = g.d_out.block(begin, b.rows), out = g.out.block(begin, b.rows);
    const MatrixOut p(scores_.data(), b.rows, n), d(d_scores_.data(), b.rows, n),
        d_askew(products_.data(), b.rows, n);
    product(d_out, transposed(in.v.block(b.low, n)), d);
    clear(d_askew);
    for (std::int64_t a = 0; a < b.rows; ++a) {
      const Range seen = seen_by(b, a);
      const float dot = vec::dot(out.row(a), d_out.row(a), out.columns);
      float *const p_row = p.row(a) + seen.begin, *const d_row = d.row(a) + seen.begin;
      if (shape_.dropout.share() > 0) {
        vec::softmax_backward_dropping(p_row, d_row, seen.size(), log_sums[begin + a], dot,
            shape_.scale,
            vec::row_dropout(shape_.dropout, shape_.head, begin + a, b.low + seen.begin));
      } else {
        vec::softmax_backward(p_row, d_row, seen.size(), log_sums[begin + a], dot, shape_.scale);
      }
      std::copy_n(d.row(a) + seen.begin, seen.size(), d_askew.row(a) + b.rows - 1 - a + seen.begin);
      clear_outside(p.row(a), seen.begin, seen.end, n);
      clear_outside(d.row(a), seen.begin, seen.end, n);
    }
    // (rows, n) (n, width) -> (rows, width)
    product(d, in.k.block(b.low, n), g.d_content.block(begin, b.rows));
    product(d_askew, in.r.block(b.first_r, n), g.d_position.block(begin, b.rows));
    // (n, rows) (rows, width) -> (n, width), added
    product(transposed(d), in.content.block(begin, b.rows), g.d_k.block(b.low, n), Into::sum);
    product(transposed(p), d_out, g.d_v.block(b.low, n), Into::sum);
    product(transposed(d_askew), in.position.block(begin, b.rows), g.d_r.block(b.first_r, n),
        Into::sum);
  }
}

}  // namespace nn
