#include "nn/kernels/dropout_attend_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/dropout_rows.h"
#include "nn/kernels/row_math.h"
#include "nn/kernels/thin_product.h"

namespace nn {
namespace {

using thin::multiply, thin::padded_to_lanes;

// At width 64 two tiles of scores and the slots' keys, values and gradients fit into a megabyte; a
// whole number of thin::kRowsAtOnce.
constexpr std::int64_t kRows = 48, kSlots = 384;

std::size_t area(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns);
}

// factor x, row after row.
void pack(const Matrix& x, float factor, float* out) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const float* const row = x.row(i);
#pragma omp simd
    for (std::int64_t c = 0; c < x.columns; ++c) out[i * x.columns + c] = factor * row[c];
  }
}

// x (n, width) -> (width, stride), zero beyond n.
void pack_turned(const Matrix& x, std::int64_t stride, float* out) {
  for (std::int64_t c = 0; c < x.columns; ++c) {
    for (std::int64_t j = 0; j < x.rows; ++j) out[c * stride + j] = x.row(j)[c];
    std::fill(out + c * stride + x.rows, out + (c + 1) * stride, 0.0f);
  }
}

// Dense rows to where they belong.
void unpack(const float* x, Into into, const MatrixOut& out) {
  for (std::int64_t i = 0; i < out.rows; ++i, x += out.columns) {
    if (into == Into::sum) {
      vec::add(x, out.columns, out.row(i));
    } else {
      std::copy_n(x, out.columns, out.row(i));
    }
  }
}

}  // namespace

DropoutAttention::DropoutAttention(const DropoutAttendShape& shape, const DropoutStream& stream)
    : shape_(shape),
      stream_(stream),
      stride_(padded_to_lanes(std::min(kSlots, shape.slots))),
      scores_(area(std::min(kRows, shape.queries), stride_)),
      queries_(area(std::min(kRows, shape.queries), shape.width)),
      turned_keys_(area(shape.width, stride_)),
      values_(area(stride_, shape.width)),
      max_(area(shape.queries, 1)),
      sum_(max_.size()) {}

std::int64_t DropoutAttention::seen(const Tile& tile, std::int64_t query) const {
  if (!shape_.causal) return tile.size;
  const std::int64_t before = shape_.slots - shape_.queries + query + 1 - tile.begin;
  return std::clamp<std::int64_t>(before, 0, tile.size);
}

template <class F>
void DropoutAttention::each_block(const Tile& tile, F f) const {
  const std::int64_t earlier = shape_.slots - shape_.queries;
  std::int64_t begin = shape_.causal ? std::max<std::int64_t>(0, tile.begin - earlier) : 0;
  for (; begin < shape_.queries; begin += kRows) {
    const std::int64_t rows = std::min(kRows, shape_.queries - begin);
    f(Block{begin, rows, seen(tile, begin + rows - 1)});
  }
}

// scores_ (rows, stride_): the first `seen` columns.
void DropoutAttention::score(const Inputs& in, const Tile& tile, const Block& b) {
  pack(in.q.block(b.begin, b.rows), shape_.scale, queries_.data());
  // (rows, width) (width, seen) -> (rows, seen)
  multiply(b.rows, padded_to_lanes(b.seen), shape_.width, {queries_.data(), shape_.width, 1},
           turned_keys_.data(), stride_, false, scores_.data(), stride_);
  for (std::int64_t i = 0; in.mask != nullptr && i < b.rows; ++i)
    vec::add(in.mask + (b.begin + i) * in.mask_row + tile.begin, b.seen,
             scores_.data() + i * stride_);
}

void DropoutAttention::forward(const Inputs& in, const MatrixOut& o, float* log_sums) {
  const std::int64_t width = shape_.width;
  for (std::int64_t slot = 0; slot < shape_.slots; slot += kSlots) {
    const Tile tile{slot, std::min(kSlots, shape_.slots - slot)};
    pack_turned(in.k.block(slot, tile.size), stride_, turned_keys_.data());
    pack(in.v.block(slot, tile.size), 1, values_.data());
    each_block(tile, [&](const Block& b) {
      score(in, tile, b);
      for (std::int64_t i = 0; i < b.rows; ++i) {
        const std::int64_t query = b.begin + i, n = seen(tile, query);
        float *const row = scores_.data() + i * stride_, *const out = o.row(query);
        float &most = max_[static_cast<std::size_t>(query)],
              &total = sum_[static_cast<std::size_t>(query)];
        const float top = vec::max_of(row, n);
        if (slot == 0) {
          most = top;
          total = 0;
        } else if (top > most) {
          const float shrink = vec::exp(most - top);
          total *= shrink;
          vec::scale(out, width, shrink);
          most = top;
        }
        total += vec::exponentiate_dropping(row, n, most,
                                            vec::row_dropout(stream_, in.head, query, slot));
        std::fill(row + n, row + b.seen, 0.0f);
      }
      // (rows, seen) (seen, width) -> (rows, width)
      multiply(b.rows, width, b.seen, {scores_.data(), stride_, 1}, values_.data(), width, slot > 0,
               o.row(b.begin), o.stride);
    });
  }
  for (std::int64_t i = 0; i < shape_.queries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    vec::scale(o.row(i), width, 1 / sum_[at]);
    log_sums[i] = max_[at] + std::log(sum_[at]);
  }
}

void DropoutAttention::backward(const Inputs& in, const float* log_sums, const Gradients& g) {
  const std::int64_t width = shape_.width;
  d_scores_.resize(scores_.size());
  d_o_.resize(queries_.size());
  turned_values_.resize(turned_keys_.size());
  for (auto* const x : {&keys_, &dk_, &dv_}) x->resize(values_.size());
  dots_.resize(max_.size());
  for (std::int64_t i = 0; i < shape_.queries; ++i)
    dots_[static_cast<std::size_t>(i)] = vec::dot(g.o.row(i), g.d_o.row(i), width);
  for (std::int64_t slot = 0; slot < shape_.slots; slot += kSlots) {
    const Tile tile{slot, std::min(kSlots, shape_.slots - slot)};
    const Matrix k = in.k.block(slot, tile.size);
    pack_turned(k, stride_, turned_keys_.data());
    pack_turned(in.v.block(slot, tile.size), stride_, turned_values_.data());
    pack(k, shape_.scale, keys_.data());
    for (auto* const x : {&dk_, &dv_}) std::fill(x->begin(), x->end(), 0.0f);
    each_block(tile, [&](const Block& b) {
      score(in, tile, b);
      pack(g.d_o.block(b.begin, b.rows), 1, d_o_.data());
      // (rows, width) (width, seen) -> (rows, seen)
      multiply(b.rows, padded_to_lanes(b.seen), width, {d_o_.data(), width, 1},
               turned_values_.data(), stride_, false, d_scores_.data(), stride_);
      for (std::int64_t i = 0; i < b.rows; ++i) {
        const std::int64_t query = b.begin + i, n = seen(tile, query);
        float *const p = scores_.data() + i * stride_, *const d = d_scores_.data() + i * stride_;
        vec::softmax_backward_dropping(p, d, n, log_sums[query],
                                       dots_[static_cast<std::size_t>(query)], 1,
                                       vec::row_dropout(stream_, in.head, query, slot));
        std::fill(p + n, p + b.seen, 0.0f);
        std::fill(d + n, d + b.seen, 0.0f);
      }
      // (seen, rows) (rows, width) -> (seen, width), added; then (rows, seen) (seen, width)
      multiply(b.seen, width, b.rows, {scores_.data(), 1, stride_}, d_o_.data(), width, true,
               dv_.data(), width);
      multiply(b.seen, width, b.rows, {d_scores_.data(), 1, stride_}, queries_.data(), width, true,
               dk_.data(), width);
      multiply(b.rows, width, b.seen, {d_scores_.data(), stride_, 1}, keys_.data(), width, slot > 0,
               g.dq.row(b.begin), g.dq.stride);
    });
    unpack(dk_.data(), g.keys, g.dk.block(slot, tile.size));
    unpack(dv_.data(), g.keys, g.dv.block(slot, tile.size));
  }
}

}  // namespace nn
