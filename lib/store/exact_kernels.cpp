#include "store/exact_kernels.h"

#include <algorithm>
#include <functional>

#include "store/vector.h"

namespace store::exact {

const std::size_t kPanel = 2 * vec::kLanes;
const std::size_t kTile = vec::kLanes == 16 ? 12 : 6;

namespace {

using vec::Floats;
using vec::kLanes;

inline void push(Top& top, float& threshold, float score, std::uint32_t row) {
  top.hits[top.size++] = make_hit(score, row);
  if (top.size == top.capacity) cut(top, threshold);
}

// kTile keys and kPanel queries: 24 (or 12) sums in registers, fed by one load of each query's
// coordinate and one broadcast of each key's.
template <bool kL2>
void score_tile(const float* panel, const float* keys, std::size_t n, std::size_t width,
                const float* half_norms, std::uint32_t first_row, float* thresholds, Top* tops) {
  const std::size_t stride = stride_of(width);
  Floats sums[kTile][2] = {};
  const float* key = keys;
  for (std::size_t j = 0; j < width; ++j, ++key, panel += kPanel) {
    const Floats a = vec::load(panel), b = vec::load(panel + kLanes);
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kTile; ++i) {
      const Floats x = vec::all(key[i * stride]);
      sums[i][0] += a * x;
      sums[i][1] += b * x;
    }
  }
  const Floats low = vec::load(thresholds), high = vec::load(thresholds + kLanes);
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kTile; ++i) {
    Floats a = sums[i][0], b = sums[i][1];
    if (kL2) {
      const Floats norm = vec::all(half_norms[i]);
      a -= norm, b -= norm;
    }
    std::uint32_t bits = vec::above(a, low) | vec::above(b, high) << kLanes;
    if (bits == 0 || i >= n) continue;
    alignas(64) float scores[kPanel];
    vec::store(scores, a), vec::store(scores + kLanes, b);
    const std::uint32_t row = first_row + static_cast<std::uint32_t>(i);
    for (; bits != 0; bits &= bits - 1) {
      const int q = std::countr_zero(bits);
      push(tops[q], thresholds[q], scores[q], row);
    }
  }
}

inline float sum_of(Floats v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

template <bool kL2>
float score_row(const float* query, const Half* key, std::size_t width) {
  float score = 0;
  std::size_t j = 0;
#if defined(__F16C__)
  Floats a{}, b{}, norm_a{}, norm_b{};
  for (; j + 2 * kLanes <= width; j += 2 * kLanes) {
    const Floats x = vec::widen(key + j), y = vec::widen(key + j + kLanes);
    a += x * vec::load(query + j);
    b += y * vec::load(query + j + kLanes);
    if (kL2) norm_a += x * x, norm_b += y * y;
  }
  score = sum_of(kL2 ? (a + b) - (norm_a + norm_b) * 0.5F : a + b);
#endif
  for (; j < width; ++j) {
    float x = 0;
    to_float(key + j, std::span(&x, 1));
    score += x * query[j] - (kL2 ? 0.5F * x * x : 0.0F);
  }
  return score;
}

}  // namespace

Hit make_hit(float score, std::uint32_t row) {
  auto bits = std::bit_cast<std::uint32_t>(score);
  if (bits == 0x80000000U) bits = 0;  // -0 is 0
  bits = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return Hit{bits} << 32 | ~row;
}

float score_of(Hit hit) {
  const auto bits = static_cast<std::uint32_t>(hit >> 32);
  return std::bit_cast<float>((bits & 0x80000000U) != 0 ? bits & 0x7fffffffU : ~bits);
}

std::uint32_t row_of(Hit hit) { return ~static_cast<std::uint32_t>(hit); }

void cut(Top& top, float& threshold) {
  if (top.size < top.keep) return;
  Hit* last = top.hits + top.keep - 1;
  std::nth_element(top.hits, last, top.hits + top.size, std::greater<>());
  top.size = top.keep;
  threshold = std::max(threshold, score_of(*last));
}

void widen_block(const Half* keys, std::size_t n, std::size_t width, float* out,
                 float* half_norms) {
  const std::size_t stride = stride_of(width);
  for (std::size_t i = 0; i < n; ++i) {
    float* row = out + i * stride;
    to_float(keys + i * width, std::span(row, width));
    if (half_norms == nullptr) continue;
    float norm = 0;
    for (std::size_t j = 0; j < width; ++j) norm += row[j] * row[j];
    half_norms[i] = norm / 2;
  }
}

void pack_panel(const float* queries, std::size_t n, std::size_t width, float* out) {
  for (std::size_t q = 0; q < kPanel; ++q)
    for (std::size_t j = 0; j < width; ++j)
      out[j * kPanel + q] = q < n ? queries[q * width + j] : 0.0F;
}

void score_block(const float* panel, const float* keys, std::size_t n, std::size_t width,
                 const float* half_norms, std::uint32_t first_row, float* thresholds, Top* tops) {
  for (std::size_t i = 0; i < n; i += kTile) {
    const float* tile = keys + i * stride_of(width);
    const auto row = first_row + static_cast<std::uint32_t>(i);
    if (half_norms == nullptr) {
      score_tile<false>(panel, tile, n - i, width, nullptr, row, thresholds, tops);
    } else {
      score_tile<true>(panel, tile, n - i, width, half_norms + i, row, thresholds, tops);
    }
  }
}

void score_rows(const float* query, const Half* keys, std::size_t n, std::size_t width, bool l2,
                std::uint32_t first_row, float& threshold, Top& top) {
  for (std::size_t i = 0; i < n; ++i) {
    const Half* key = keys + i * width;
    const float score =
        l2 ? score_row<true>(query, key, width) : score_row<false>(query, key, width);
    if (score > threshold) push(top, threshold, score, first_row + static_cast<std::uint32_t>(i));
  }
}

}  // namespace store::exact
