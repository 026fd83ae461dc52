#include "nn/kernels/slot_attention_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

// Two tiles of scores and the slots' keys, values and gradients fit into a megabyte at width 64;
// whole numbers of kRowsAtOnce.
constexpr std::int64_t kRows = 48, kMostSlots = 384;

std::int64_t tile_of(std::int64_t slots) {
  const auto tiles = (slots + kMostSlots - 1) / kMostSlots;
  return (slots + tiles - 1) / tiles;
}

// Products whose inner or outer dimension is a head's width are too thin for the BLAS, which packs
// both sides each time. Here B is read in place, kRowsAtOnce rows of C stay in registers.
using Lanes = vec::Floats;
constexpr int kLanes = vec::kFloats;
constexpr int kVectors = kLanes == 16 ? 4 : 2;
constexpr int kRowsAtOnce = kLanes == 16 ? 6 : 4;

struct Strided {
  const float* at;
  std::int64_t row, column;
};

/// R rows and V vectors of C (+)= A B over `depth`.
template <int R, int V>
void panel(const Strided& a, const float* b, std::int64_t b_row, std::int64_t depth, bool add,
           float* c, std::int64_t c_row) {
  Lanes sum[R][V];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      sum[i][v] = add ? *reinterpret_cast<const Lanes*>(c + i * c_row + v * kLanes) : Lanes{};
  for (std::int64_t k = 0; k < depth; ++k) {
    Lanes row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      row[v] = *reinterpret_cast<const Lanes*>(b + k * b_row + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const float x = a.at[i * a.row + k * a.column];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) *reinterpret_cast<Lanes*>(c + i * c_row + v * kLanes) = sum[i][v];
}

template <int V>
void columns(std::int64_t m, Strided a, const float* b, std::int64_t b_row, std::int64_t depth,
             bool add, float* c, std::int64_t c_row) {
  std::int64_t i = 0;
  const auto from = [&](std::int64_t row) { return Strided{a.at + row * a.row, a.row, a.column}; };
  for (; i + kRowsAtOnce <= m; i += kRowsAtOnce)
    panel<kRowsAtOnce, V>(from(i), b, b_row, depth, add, c + i * c_row, c_row);
  for (; i + 2 <= m; i += 2) panel<2, V>(from(i), b, b_row, depth, add, c + i * c_row, c_row);
  if (i < m) panel<1, V>(from(i), b, b_row, depth, add, c + i * c_row, c_row);
}

/// C (m, n) (+)= A (m, depth) B (depth, n); n is a multiple of kLanes.
void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const Strided& a, const float* b,
              std::int64_t b_row, bool add, float* c, std::int64_t c_row) {
  std::int64_t j = 0;
  for (; j + kVectors * kLanes <= n; j += kVectors * kLanes)
    columns<kVectors>(m, a, b + j, b_row, depth, add, c + j, c_row);
  for (; j < n; j += kLanes) columns<1>(m, a, b + j, b_row, depth, add, c + j, c_row);
}

/// rows (n, width) -> (width, padded), zero beyond n.
void transpose(const float* rows, std::int64_t n, std::int64_t width, std::int64_t padded,
               float* out) {
  for (std::int64_t c = 0; c < width; ++c) {
    for (std::int64_t j = 0; j < n; ++j) out[c * padded + j] = rows[j * width + c];
    std::fill(out + c * padded + n, out + (c + 1) * padded, 0.0f);
  }
}

std::int64_t padded_to_lanes(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

}  // namespace

bool SlotAttention::fits(std::int64_t width) { return width % kLanes == 0; }

SlotAttention::SlotAttention(std::int64_t slots, std::int64_t width, std::int64_t stride)
    : slots_(slots),
      width_(width),
      stride_(stride),
      tile_(tile_of(slots)),
      scores_(static_cast<std::size_t>(kRows * padded_to_lanes(tile_))),
      turned_(static_cast<std::size_t>(width * padded_to_lanes(tile_))) {}

void SlotAttention::forward(std::int64_t queries, const float* q, const float* keys,
                            const float* values, float* o, float* log_sums) {
  std::vector<float> max(static_cast<std::size_t>(queries)), sum(max.size());
  for (std::int64_t slot = 0; slot < slots_; slot += tile_) {
    const std::int64_t n = std::min(tile_, slots_ - slot), row_size = padded_to_lanes(n);
    transpose(keys + slot * width_, n, width_, row_size, turned_.data());
    for (std::int64_t begin = 0; begin < queries; begin += kRows) {
      const std::int64_t rows = std::min(kRows, queries - begin);
      float* const out = o + begin * stride_;
      // scores (rows, n) = q (rows, width) keys^T (width, n)
      multiply(rows, row_size, width_, {q + begin * stride_, stride_, 1}, turned_.data(), row_size,
               false, scores_.data(), row_size);
      for (std::int64_t i = 0; i < rows; ++i) {
        float* const row = scores_.data() + i * row_size;
        float &most = max[static_cast<std::size_t>(begin + i)],
              &total = sum[static_cast<std::size_t>(begin + i)];
        const float top = vec::max_of(row, n);
        if (slot == 0) {
          most = top;
          total = vec::exponentiate(row, n, top);
          continue;
        }
        if (top > most) {
          const float shrink = vec::exp(most - top);
          total *= shrink;
          vec::scale(out + i * stride_, width_, shrink);
          most = top;
        }
        total += vec::exponentiate(row, n, most);
      }
      // o (rows, width) += weights (rows, n) values (n, width)
      multiply(rows, width_, n, {scores_.data(), row_size, 1}, values + slot * width_, width_,
               slot > 0, out, stride_);
    }
  }
  for (std::int64_t i = 0; i < queries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    vec::scale(o + i * stride_, width_, 1 / sum[at]);
    log_sums[i] = max[at] + std::log(sum[at]);
  }
}

void SlotAttention::backward(std::int64_t queries, const float* q, const float* keys,
                             const float* values, const float* o, const float* log_sums,
                             const float* d_o, float* dq, float* d_keys, float* d_values) {
  d_scores_.resize(scores_.size());
  turned_values_.resize(turned_.size());
  dots_.resize(static_cast<std::size_t>(queries));
  for (std::int64_t i = 0; i < queries; ++i) {
    dots_[static_cast<std::size_t>(i)] = vec::dot(o + i * stride_, d_o + i * stride_, width_);
  }
  for (std::int64_t slot = 0; slot < slots_; slot += tile_) {
    const std::int64_t n = std::min(tile_, slots_ - slot), at = slot * width_;
    const std::int64_t row_size = padded_to_lanes(n);
    transpose(keys + at, n, width_, row_size, turned_.data());
    transpose(values + at, n, width_, row_size, turned_values_.data());
    for (std::int64_t begin = 0; begin < queries; begin += kRows) {
      const std::int64_t rows = std::min(kRows, queries - begin);
      const float *const q_rows = q + begin * stride_, *const d_rows = d_o + begin * stride_;
      // scores (rows, n) = q (rows, width) keys^T (width, n), and d_o values^T in the same way
      multiply(rows, row_size, width_, {q_rows, stride_, 1}, turned_.data(), row_size, false,
               scores_.data(), row_size);
      multiply(rows, row_size, width_, {d_rows, stride_, 1}, turned_values_.data(), row_size, false,
               d_scores_.data(), row_size);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float dot = dots_[static_cast<std::size_t>(begin + i)];
        vec::softmax_backward(scores_.data() + i * row_size, d_scores_.data() + i * row_size, n,
                              log_sums[begin + i], dot, 1);
      }
      // d_values (n, width) += weights^T (n, rows) d_o (rows, width); d_keys likewise, of q; then
      // dq (rows, width) += d_scores (rows, n) keys (n, width)
      multiply(n, width_, rows, {scores_.data(), 1, row_size}, d_rows, stride_, begin > 0,
               d_values + at, width_);
      multiply(n, width_, rows, {d_scores_.data(), 1, row_size}, q_rows, stride_, begin > 0,
               d_keys + at, width_);
      multiply(rows, width_, n, {d_scores_.data(), row_size, 1}, keys + at, width_, slot > 0,
               dq + begin * stride_, stride_);
    }
  }
}

}  // namespace nn
