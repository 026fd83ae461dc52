#include "nn/kernels/slot_attention_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/row_math.h"
#include "nn/kernels/thin_product.h"

namespace nn {
namespace {

using thin::kLanes, thin::multiply, thin::padded_to_lanes, thin::transpose;

// Multiples of kRowsAtOnce. At width 64, two tiles of scores and the keys, values and gradients of
// a tile's slots fit into a megabyte.
constexpr std::int64_t kRows = 48, kMostSlots = 384;

std::int64_t tile_of(std::int64_t slots) {
  const auto tiles = (slots + kMostSlots - 1) / kMostSlots;
  return (slots + tiles - 1) / tiles;
}

}  // namespace

bool SlotAttention::fits(std::int64_t width) { return width % kLanes == 0; }

SlotAttention::SlotAttention(std::int64_t slots, std::int64_t width, std::int64_t stride)
    : slots_(slots), width_(width), stride_(stride), tile_(tile_of(slots)),
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
    const float* values, const float* o, const float* log_sums, const float* d_o, float* dq,
    float* d_keys, float* d_values) {
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
