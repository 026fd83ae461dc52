#include "nn/product/sgemm_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nn/kernels/vector_math.h"

namespace nn {
namespace {

using Lanes = vec::Floats;
constexpr bool kWide = vec::kFloats == 16;
// Size of a tile, whose sums fill most of the registers.
constexpr std::int64_t kVectors = kWide ? 4 : 2, kTileRows = kWide ? 6 : 4,
                       kTileColumns = kVectors * vec::kFloats;
// Sizes of blocks: terms of a sum, rows of A (192 KiB), columns of B (512 KiB).
constexpr std::int64_t kDepth = 256, kRows = 192, kColumns = 512;

std::int64_t whole(std::int64_t n, std::int64_t of) { return (n + of - 1) / of * of; }

// A buffer of floats that begins at a cache line.
class Room {
 public:
  float* of(std::int64_t n) {
    lines_.resize(static_cast<std::size_t>(whole(n, 16) / 16));
    return lines_.data()->at;
  }

 private:
  struct alignas(64) Line {
    float at[16];
  };
  std::vector<Line> lines_;
};

// Packs panels of kTileRows rows, column by column. Missing rows are zero.
void pack(const SgemmFactor& a, std::int64_t rows, std::int64_t depth, float scale, float* to) {
  for (std::int64_t i = 0; i < rows; i += kTileRows, to += kTileRows * depth) {
    const float* const from = a.at + i * a.row;
    const std::int64_t n = std::min(kTileRows, rows - i);
    if (n < kTileRows) std::fill(to, to + kTileRows * depth, 0.0f);
    if (n == kTileRows && a.row == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t r = 0; r < kTileRows; ++r)
          to[k * kTileRows + r] = scale * from[r + k * a.column];
    } else {
      for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t k = 0; k < depth; ++k)
          to[k * kTileRows + r] = scale * from[r * a.row + k * a.column];
    }
  }
}

// Exchanges halves of two lines of a square that are kStep apart.
template <int kStep, std::size_t... kAt>
void exchange(Lanes& low, Lanes& high, std::index_sequence<kAt...>) {
  const Lanes x = low, y = high;
  low = __builtin_shufflevector(x, y, ((kAt & kStep) ? vec::kFloats + kAt - kStep : kAt)...);
  high = __builtin_shufflevector(x, y, ((kAt & kStep) ? vec::kFloats + kAt : kAt + kStep)...);
}

template <int kStep> void turn(Lanes (&square)[vec::kFloats]) {
#pragma GCC unroll 16
  for (int i = 0; i < vec::kFloats; ++i)
    if ((i & kStep) == 0)
      exchange<kStep>(square[i], square[i + kStep], std::make_index_sequence<vec::kFloats>());
  if constexpr (kStep > 1) turn<kStep / 2>(square);
}

// Transposes a square of B. Column c begins at from + c * stride.
void turn(const float* from, std::int64_t stride, float* to) {
  Lanes square[vec::kFloats];
#pragma GCC unroll 16
  for (int c = 0; c < vec::kFloats; ++c) square[c] = vec::load(from + c * stride);
  turn<vec::kFloats / 2>(square);
#pragma GCC unroll 16
  for (int k = 0; k < vec::kFloats; ++k) vec::store(to + k * kTileColumns, square[k]);
}

// Packs panels of kTileColumns columns, row by row. Missing columns are zero.
void pack(const SgemmFactor& b, std::int64_t columns, std::int64_t depth, float* to) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns, to += kTileColumns * depth) {
    const float* const from = b.at + j * b.column;
    const std::int64_t n = std::min(kTileColumns, columns - j);
    if (n < kTileColumns) std::fill(to, to + kTileColumns * depth, 0.0f);
    if (b.column == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        std::copy_n(from + k * b.row, n, to + k * kTileColumns);
      continue;
    }
    const std::int64_t squares = depth / vec::kFloats * vec::kFloats,
                       turned = n / vec::kFloats * vec::kFloats;
    for (std::int64_t k = 0; k < squares; k += vec::kFloats)
      for (std::int64_t c = 0; c < turned; c += vec::kFloats)
        turn(from + c * b.column + k, b.column, to + k * kTileColumns + c);
    for (std::int64_t c = 0; c < n; ++c)
      for (std::int64_t k = c < turned ? squares : 0; k < depth; ++k)
        to[k * kTileColumns + c] = from[c * b.column + k];
  }
}

// Computes one tile of C from kTileRows lines of A and the first kWidth vectors of a panel of B.
// Only `rows` lines count. Elements of a line are `step` floats apart.
template <int kWidth>
void tile(const float* const (&a)[kTileRows], std::int64_t step, const float* b, std::int64_t depth,
    bool add, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  Lanes sum[kTileRows][kWidth] = {};
  for (std::int64_t k = 0; k < depth; ++k, b += kTileColumns) {
    Lanes row[kWidth];
#pragma GCC unroll 4
    for (int v = 0; v < kWidth; ++v) row[v] = vec::load(b + v * vec::kFloats);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      const float x = a[i][k * step];
#pragma GCC unroll 4
      for (int v = 0; v < kWidth; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i) {
    if (i == rows) return;
#pragma GCC unroll 4
    for (int v = 0; v < kWidth; ++v) {
      float* const to = c + i * c_row + v * vec::kFloats;
      if (columns >= (v + 1) * vec::kFloats) {
        vec::store(to, add ? vec::load(to) + sum[i][v] : sum[i][v]);
      } else {
        for (int j = 0; j < columns - v * vec::kFloats; ++j)
          to[j] = add ? to[j] + sum[i][v][j] : sum[i][v][j];
      }
    }
  }
}

// Chooses the narrowest tile that covers the columns.
void tile(const float* const (&a)[kTileRows], std::int64_t step, const float* b, std::int64_t depth,
    bool add, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  if (columns <= vec::kFloats) {
    tile<1>(a, step, b, depth, add, c, c_row, rows, columns);
  } else if (columns <= 2 * vec::kFloats) {
    tile<2>(a, step, b, depth, add, c, c_row, rows, columns);
  } else {
    tile<kVectors>(a, step, b, depth, add, c, c_row, rows, columns);
  }
}

}  // namespace

SgemmTile sgemm_tile() { return {kTileRows, kTileColumns}; }

bool sgemm_is_wide() { return kWide; }

void multiply(const SgemmProduct& p) {
  thread_local Room room_a, room_b;
  // A needs no packing if a tile reads contiguous lines of it, or if consecutive tiles read the
  // same few cache lines.
  const bool as_it_is = p.scale == 1 && (p.a.column == 1 || p.a.column % 16 == 0);
  const std::int64_t most = std::min(kDepth, p.k);
  float* const packed_a =
      as_it_is ? nullptr : room_a.of(whole(std::min(kRows, p.m), kTileRows) * most);
  float* const packed_b = room_b.of(whole(std::min(kColumns, p.n), kTileColumns) * most);
  for (std::int64_t j = 0; j < p.n; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, p.n - j);
    for (std::int64_t k = 0; k < p.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.k - k);
      const bool add = p.add || k > 0;
      pack({p.b.at + k * p.b.row + j * p.b.column, p.b.row, p.b.column}, columns, depth, packed_b);
      for (std::int64_t i = 0; i < p.m; i += kRows) {
        const std::int64_t rows = std::min(kRows, p.m - i);
        const float* const from = p.a.at + i * p.a.row + k * p.a.column;
        if (!as_it_is) pack({from, p.a.row, p.a.column}, rows, depth, p.scale, packed_a);
        for (std::int64_t v = 0; v < columns; v += kTileColumns)
          for (std::int64_t r = 0; r < rows; r += kTileRows) {
            const std::int64_t n = std::min(kTileRows, rows - r);
            const float* a[kTileRows];
            for (std::int64_t q = 0; q < kTileRows; ++q)
              a[q] =
                  as_it_is ? from + (r + std::min(q, n - 1)) * p.a.row : packed_a + r * depth + q;
            tile(a, as_it_is ? p.a.column : kTileRows, packed_b + v * depth, depth, add,
                p.c + (i + r) * p.c_row + j + v, p.c_row, n, std::min(kTileColumns, columns - v));
          }
      }
    }
  }
}

}  // namespace nn
