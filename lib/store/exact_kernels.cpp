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

// Scores kTile keys and kPanel queries with 24 (or 12) sums in registers. Each step loads one
// coordinate of the queries and broadcasts one of each key.
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

// Sums q.k and |k|^2 over the coordinates of kLanes rows. Terms are added in score_tile's order, so
// that a key's score has the same bits in both.
template <bool kScores, bool kNorms> struct RowSums {
  Floats scores{}, norms{};

  // Adds the first n transposed coordinates.
  void add(const Floats* coordinates, const float* query, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      const Floats x = coordinates[j];
      if (kScores) scores += vec::all(query[j]) * x;
      if (kNorms) norms += x * x;
    }
  }
};

// Sums over kLanes rows from `keys` on, of which n exist. query is unused without kScores.
template <bool kScores, bool kNorms>
void sum_rows(const float* query, const Half* keys, std::size_t n, std::size_t width,
    RowSums<kScores, kNorms>& sums) {
  const Half* rows[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) rows[i] = keys + std::min(i, n - 1) * width;
  Floats turned[vec::kTurned];
  const std::size_t rest = width % vec::kTurned;
  const Half* next = keys + kLanes * width;  // the next kLanes rows
  for (std::size_t j = 0; j < width - rest; j += vec::kTurned) {
    for (std::size_t i = 0; i < kLanes / 4; ++i, next += 32) __builtin_prefetch(next);
    vec::widen_turned(rows, turned);
    sums.add(turned, kScores ? query + j : nullptr, vec::kTurned);
    for (const Half*& row : rows) row += vec::kTurned;
  }
  if (rest == 0) return;
  Half last[kLanes][vec::kTurned] = {};
  for (std::size_t i = 0; i < kLanes; ++i) rows[i] = std::copy_n(rows[i], rest, last[i]) - rest;
  vec::widen_turned(rows, turned);
  sums.add(turned, kScores ? query + width - rest : nullptr, rest);
}

template <bool kL2>
void score_lanes(const float* query, const Half* keys, std::size_t n, std::size_t width,
    std::uint32_t first_row, float& threshold, Top& top) {
  RowSums<true, kL2> sums;
  sum_rows(query, keys, n, width, sums);
  alignas(64) float scores[kLanes];
  const Floats result = kL2 ? sums.scores - sums.norms * vec::all(0.5F) : sums.scores;
  vec::store(scores, result);
  for (std::uint32_t bits = vec::above(result, vec::all(threshold)); bits != 0; bits &= bits - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(bits));
    if (i < n && scores[i] > threshold) push(top, threshold, scores[i], first_row + i);
  }
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

void widen_block(
    const Half* keys, std::size_t n, std::size_t width, float* out, float* half_norms) {
  for (std::size_t i = 0; i < n; ++i)
    to_float(keys + i * width, std::span(out + i * stride_of(width), width));
  if (half_norms == nullptr) return;
  for (std::size_t i = 0; i < n; i += kLanes) {
    RowSums<false, true> sums;
    sum_rows(nullptr, keys + i * width, n - i, width, sums);
    vec::store(half_norms + i, sums.norms * vec::all(0.5F));
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
  const auto score = l2 ? score_lanes<true> : score_lanes<false>;
  for (std::size_t i = 0; i < n; i += kLanes)
    score(query, keys + i * width, std::min<std::size_t>(n - i, kLanes), width,
        first_row + static_cast<std::uint32_t>(i), threshold, top);
}

}  // namespace store::exact
