#pragma once
// Products of float32 matrices with one dimension as small as a head's width. A BLAS packs both
// factors on each call, which costs as much as such a product. These functions read B in place and
// keep rows of C in registers. Files that include this header need the compiler options of
// vector_math.h.

#include "nn/kernels/vector_math.h"

namespace nn::thin {

using Lanes = vec::Floats;
inline constexpr int kLanes = vec::kFloats;
inline constexpr int kVectors = kLanes == 16 ? 4 : 2;
inline constexpr int kRowsAtOnce = kLanes == 16 ? 6 : 4;

struct Strided {
  const float* at;
  std::int64_t row, column;
};

/// C = A B or C += A B for R rows and V vectors of C, over `depth`.
template <int R, int V>
void panel(const Strided& a, const float* b, std::int64_t b_row, std::int64_t depth, bool add,
    float* c, std::int64_t c_row) {
  Lanes sum[R][V];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = add ? vec::load(c + i * c_row + v * kLanes) : Lanes{};
  for (std::int64_t k = 0; k < depth; ++k) {
    Lanes row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = vec::load(b + k * b_row + v * kLanes);
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
    for (int v = 0; v < V; ++v) vec::store(c + i * c_row + v * kLanes, sum[i][v]);
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

/// C = A B, or C += A B if `add`. Shapes: C (m, n), A (m, depth), B (depth, n). n must be a
/// multiple of kLanes.
inline void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const Strided& a,
    const float* b, std::int64_t b_row, bool add, float* c, std::int64_t c_row) {
  std::int64_t j = 0;
  for (; j + kVectors * kLanes <= n; j += kVectors * kLanes)
    columns<kVectors>(m, a, b + j, b_row, depth, add, c + j, c_row);
  for (; j < n; j += kLanes) columns<1>(m, a, b + j, b_row, depth, add, c + j, c_row);
}

inline std::int64_t padded_to_lanes(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

}  // namespace nn::thin
