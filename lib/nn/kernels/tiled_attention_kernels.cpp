#include "nn/kernels/tiled_attention_kernels.h"

#include <algorithm>

#include "nn/kernels/dropout_rows.h"
#include "nn/kernels/row_math.h"
#include "nn/kernels/thin_product.h"

namespace nn {
namespace {

using thin::multiply, thin::padded_to_lanes;

// Multiples of thin::kRowsAtOnce. At width 64, two tiles of scores and the keys, values and
// gradients of a tile's slots fit into a megabyte.
constexpr std::int64_t kRows = 48, kSlots = 384;

std::size_t area(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns);
}

// Packs factor * x into (n, wide), with zeros beyond x's columns.
void pack(const Matrix& x, float factor, std::int64_t wide, float* out) {
  for (std::int64_t i = 0; i < x.rows; ++i, out += wide) {
    const float* const row = x.row(i);
#pragma omp simd
    for (std::int64_t c = 0; c < x.columns; ++c) out[c] = factor * row[c];
    std::fill(out + x.columns, out + wide, 0.0f);
  }
}

// Packs the transpose of x (n, width) into (width, stride), with zeros beyond n.
void pack_turned(const Matrix& x, std::int64_t stride, float* out) {
  for (std::int64_t c = 0; c < x.columns; ++c) {
    for (std::int64_t j = 0; j < x.rows; ++j) out[c * stride + j] = x.row(j)[c];
    std::fill(out + c * stride + x.rows, out + (c + 1) * stride, 0.0f);
  }
}

// Writes or adds rows of (n, wide) to `out`.
void unpack(const float* x, std::int64_t wide, Into into, const MatrixOut& out) {
  for (std::int64_t i = 0; i < out.rows; ++i, x += wide) {
    if (into == Into::sum) {
      vec::add(x, out.columns, out.row(i));
    } else {
      std::copy_n(x, out.columns, out.row(i));
    }
  }
}

}  // namespace

TiledAttention::TiledAttention(const TiledAttentionShape& shape, const DropoutStream& stream)
    : shape_(shape), stream_(stream), wide_(padded_to_lanes(shape.width)),
      stride_(padded_to_lanes(std::min(kSlots, shape.slots))),
      scores_(area(std::min(kRows, shape.queries), stride_)),
      queries_(area(std::min(kRows, shape.queries), wide_)),
      turned_keys_(area(shape.width, stride_)), values_(area(stride_, wide_)),
      out_(area(shape.queries, wide_)), max_(area(shape.queries, 1)), sum_(max_.size()) {}

std::int64_t TiledAttention::seen(const Tile& tile, std::int64_t query) const {
  if (!shape_.causal) return tile.size;
  const std::int64_t before = shape_.slots - shape_.queries + query + 1 - tile.begin;
  return std::clamp<std::int64_t>(before, 0, tile.size);
}

template <class F> void TiledAttention::each_block(const Tile& tile, F f) const {
  const std::int64_t earlier = shape_.slots - shape_.queries;
  std::int64_t begin = shape_.causal ? std::max<std::int64_t>(0, tile.begin - earlier) : 0;
  for (; begin < shape_.queries; begin += kRows) {
    const std::int64_t rows = std::min(kRows, shape_.queries - begin);
    f(Block{begin, rows, seen(tile, begin + rows - 1)});
  }
}

// Writes the first `seen` columns of scores_ (rows, stride_).
void TiledAttention::score(const Inputs& in, const Tile& tile, const Block& b) {
  pack(in.q.block(b.begin, b.rows), shape_.scale, wide_, queries_.data());
  // (rows, width) (width, seen) -> (rows, seen)
  multiply(b.rows, padded_to_lanes(b.seen), shape_.width, {queries_.data(), wide_, 1},
      turned_keys_.data(), stride_, false, scores_.data(), stride_);
  for (std::int64_t i = 0; in.mask != nullptr && i < b.rows; ++i)
    vec::add(
        in.mask + (b.begin + i) * in.mask_row + tile.begin, b.seen, scores_.data() + i * stride_);
}

void TiledAttention::forward(const Inputs& in, const MatrixOut& o, float* log_sums) {
  const bool drops = stream_.share() > 0;
  for (std::int64_t slot = 0; slot < shape_.slots; slot += kSlots) {
    const Tile tile{slot, std::min(kSlots, shape_.slots - slot)};
    pack_turned(in.k.block(slot, tile.size), stride_, turned_keys_.data());
    pack(in.v.block(slot, tile.size), 1, wide_, values_.data());
    each_block(tile, [&](const Block& b) {
      score(in, tile, b);
      for (std::int64_t i = 0; i < b.rows; ++i) {
        const std::int64_t query = b.begin + i, n = seen(tile, query);
        float *const row = scores_.data() + i * stride_, *const out = out_.data() + query * wide_;
        float &most = max_[static_cast<std::size_t>(query)],
              &total = sum_[static_cast<std::size_t>(query)];
        const float top = vec::max_of(row, n);
        if (slot == 0) {
          most = top;
          total = 0;
        } else if (top > most) {
          const float shrink = vec::exp(most - top);
          total *= shrink;
          vec::scale(out, wide_, shrink);
          most = top;
        }
        total += drops ? vec::exponentiate_dropping(
                             row, n, most, vec::row_dropout(stream_, in.head, query, slot))
                       : vec::exponentiate(row, n, most);
        std::fill(row + n, row + b.seen, 0.0f);
      }
      // (rows, seen) (seen, width) -> (rows, width)
      multiply(b.rows, wide_, b.seen, {scores_.data(), stride_, 1}, values_.data(), wide_, slot > 0,
          out_.data() + b.begin * wide_, wide_);
    });
  }
  for (std::int64_t i = 0; i < shape_.queries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    vec::scale(out_.data() + i * wide_, wide_, 1 / sum_[at]);
    log_sums[i] = max_[at] + std::log(sum_[at]);
  }
  unpack(out_.data(), wide_, Into::fresh, o);
}

void TiledAttention::backward(const Inputs& in, const float* log_sums, const Gradients& g) {
  const std::int64_t width = shape_.width;
  const bool drops = stream_.share() > 0;
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
    pack(k, shape_.scale, wide_, keys_.data());
    for (auto* const x : {&dk_, &dv_}) std::fill(x->begin(), x->end(), 0.0f);
    each_block(tile, [&](const Block& b) {
      score(in, tile, b);
      pack(g.d_o.block(b.begin, b.rows), 1, wide_, d_o_.data());
      // (rows, width) (width, seen) -> (rows, seen)
      multiply(b.rows, padded_to_lanes(b.seen), width, {d_o_.data(), wide_, 1},
          turned_values_.data(), stride_, false, d_scores_.data(), stride_);
      for (std::int64_t i = 0; i < b.rows; ++i) {
        const std::int64_t query = b.begin + i, n = seen(tile, query);
        float *const p = scores_.data() + i * stride_, *const d = d_scores_.data() + i * stride_;
        const float dot = dots_[static_cast<std::size_t>(query)];
        if (drops) {
          vec::softmax_backward_dropping(
              p, d, n, log_sums[query], dot, 1, vec::row_dropout(stream_, in.head, query, slot));
        } else {
          vec::softmax_backward(p, d, n, log_sums[query], dot, 1);
        }
        std::fill(p + n, p + b.seen, 0.0f);
        std::fill(d + n, d + b.seen, 0.0f);
      }
      // (seen, rows) (rows, width) -> (seen, width), added; then (rows, seen) (seen, width)
      multiply(b.seen, wide_, b.rows, {scores_.data(), 1, stride_}, d_o_.data(), wide_, true,
          dv_.data(), wide_);
      multiply(b.seen, wide_, b.rows, {d_scores_.data(), 1, stride_}, queries_.data(), wide_, true,
          dk_.data(), wide_);
      multiply(b.rows, wide_, b.seen, {d_scores_.data(), stride_, 1}, keys_.data(), wide_, slot > 0,
          out_.data() + b.begin * wide_, wide_);
    });
    unpack(dk_.data(), wide_, g.keys, g.dk.block(slot, tile.size));
    unpack(dv_.data(), wide_, g.keys, g.dv.block(slot, tile.size));
  }
  unpack(out_.data(), wide_, Into::fresh, g.dq);
}

}  // namespace nn
