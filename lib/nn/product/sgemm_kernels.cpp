#include "nn/product/sgemm_kernels.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include <algorithm>
#include <vector>

#include "nn/kernels/square.h"
#include "nn/kernels/tiles.h"

namespace nn {
namespace {

using Lanes = vec::Floats;
constexpr bool kWide = vec::kFloats == 16;
#ifdef __AVX512BF16__
constexpr bool kHasPairs = kWide;
#else
constexpr bool kHasPairs = false;
#endif
// Size of a tile, whose sums fill most of the registers.
constexpr std::int64_t kVectors = kWide ? 4 : 2, kTileRows = kWide ? 6 : 4,
                       kTileColumns = kVectors * vec::kFloats;
// Sizes of blocks: terms of a sum, rows of A (192 KiB), columns of B (512 KiB).
constexpr std::int64_t kDepth = 256, kRows = 192, kColumns = 512;

std::int64_t whole(std::int64_t n, std::int64_t of) { return (n + of - 1) / of * of; }

// A tile has kLines lines of kLines pairs. Two by two of them are computed together.
constexpr std::int64_t kLines = 16, kBoth = 2 * kLines;

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

// Transposes a square of B. Column c begins at from + c * stride.
void turn(const float* from, std::int64_t stride, float* to) {
  Lanes square[vec::kFloats];
#pragma GCC unroll 16
  for (int c = 0; c < vec::kFloats; ++c) square[c] = vec::load(from + c * stride);
  vec::transpose(square, to, kTileColumns);
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

// Returns the upper half of the nearest bfloat16, ties to even.
std::uint32_t to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return x != x ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

// Number of lines of `depth` rounded terms: with kHasPairs, a line has the terms 2 k and 2 k + 1 as
// pairs; a missing last term is zero.
std::int64_t lines_of(std::int64_t depth) { return kHasPairs ? (depth + 1) / 2 : depth; }

float rounded(float term, float next) {
  const auto low = to_bfloat16(term);
  return std::bit_cast<float>(kHasPairs ? low | to_bfloat16(next) << 16 : low << 16);
}

// Rounds `depth` lines of `width` terms to bfloat16. `from` and `to` may be the same.
void round_lines(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t width,
    float scale, float* to, std::int64_t to_stride) {
  constexpr std::int64_t kTerms = kHasPairs ? 2 : 1;
  for (std::int64_t k = 0; k < depth; k += kTerms, from += kTerms * stride, to += to_stride) {
    const bool both = k + 1 < depth;
    const float* const next = both ? from + stride : from;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      to[i] = rounded(scale * from[i], both ? scale * next[i] : 0);
  }
}

// Rounds a block of A to bfloat16. Returns where: its line k of row i is at[i * row + k * column].
SgemmFactor round_block(const SgemmFactor& a, std::int64_t rows, std::int64_t depth,
    std::int64_t lines, float scale, float* to) {
  const std::int64_t whole = kHasPairs ? depth / 2 : depth;
  if (a.column != 1) {
    round_lines(a.at, a.column, depth, rows, scale, to, rows);
    return {to, 1, rows};
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const from = a.at + i * a.row;
    float* const line = to + i * lines;
#pragma omp simd
    for (std::int64_t k = 0; k < whole; ++k)
      line[k] = kHasPairs ? rounded(scale * from[2 * k], scale * from[2 * k + 1])
                          : rounded(scale * from[k], 0);
    if (whole < lines_of(depth)) line[whole] = rounded(scale * from[depth - 1], 0);
    std::fill(line + lines_of(depth), line + lines, 0.0f);
  }
  return {to, lines, 1};
}

#ifdef __AVX512BF16__
// Rounds a block of A as round_block() does, with `lines` pairs of a row side by side.
void round_rows(const SgemmFactor& a, std::int64_t rows, std::int64_t depth, std::int64_t lines,
    float scale, float* to) {
  thread_local Room room;
  if (a.column == 1) return void(round_block(a, rows, depth, lines, scale, to));
  const std::int64_t width = whole(rows, kLines);
  float* const turned = room.of(lines * width);
  round_lines(a.at, a.column, depth, rows, scale, turned, width);
  std::fill(turned + lines_of(depth) * width, turned + lines * width, 0.0f);
  for (std::int64_t i = 0; i < width; i += kLines)
    for (std::int64_t k = 0; k < lines; k += kLines) {
      Lanes square[kLines];
#pragma GCC unroll 16
      for (int q = 0; q < kLines; ++q) square[q] = vec::load(turned + (k + q) * width + i);
      vec::transpose(square, to + i * lines + k, lines);
    }
}

// Computes kBoth rows and columns of C, of which `rows` and `columns` count, from `lines` pairs of
// each row of A and lines of a panel of B.
void tiles(const float* a, const float* b, std::int64_t lines, bool add, float* c,
    std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = kLines * sizeof(float), kLine = kTileColumns * sizeof(float);
  alignas(64) float sums[kBoth][kBoth];
  add_tiles({a, lines * kTile, static_cast<std::int64_t>(lines * sizeof(float)), kTile},
      {b, kTile, kLine, kLines * kLine}, lines / kLines, sums[0]);
  for (std::int64_t i = 0; i < std::min(kBoth, rows); ++i)
    for (std::int64_t j = 0; j < std::min(kBoth, columns); ++j)
      c[i * c_row + j] = (add ? c[i * c_row + j] : 0) + sums[i][j];
}
#endif

// Returns sum + x y; for pairs, sum + the product of the first halves + that of the second.
template <bool kPairs> Lanes add_product(Lanes sum, float x, Lanes y) {
#ifdef __AVX512BF16__
  if constexpr (kPairs) {
    const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_ps(x));
    return Lanes(_mm512_dpbf16_ps(__m512(sum), factor, reinterpret_cast<__m512bh>(y)));
  }
#endif
  return sum + x * y;
}

// Computes one tile of C from kTileRows lines of A and the first kWidth vectors of a panel of B.
// Only `rows` lines count. Elements of a line are `step` floats apart.
template <int kWidth, bool kPairs>
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
      for (int v = 0; v < kWidth; ++v) sum[i][v] = add_product<kPairs>(sum[i][v], x, row[v]);
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
template <bool kPairs>
void tile(const float* const (&a)[kTileRows], std::int64_t step, const float* b, std::int64_t depth,
    bool add, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  if (columns <= vec::kFloats) {
    tile<1, kPairs>(a, step, b, depth, add, c, c_row, rows, columns);
  } else if (columns <= 2 * vec::kFloats) {
    tile<2, kPairs>(a, step, b, depth, add, c, c_row, rows, columns);
  } else {
    tile<kVectors, kPairs>(a, step, b, depth, add, c, c_row, rows, columns);
  }
}

}  // namespace

SgemmTile sgemm_tile() { return {kTileRows, kTileColumns}; }

bool sgemm_is_wide() { return kWide; }

void multiply(const SgemmProduct& p) {
  thread_local Room room_a, room_b;
  // A needs no packing if a tile reads contiguous lines of it, or if consecutive tiles read the
  // same few cache lines.
  const bool as_it_is = p.scale == 1 && (p.a.column == 1 || p.a.column % 16 == 0) && !p.rounded;
  const std::int64_t most = std::min(kDepth, p.k);
  float* const packed_a = as_it_is ? nullptr : room_a.of((std::min(kRows, p.m) + kBoth) * most);
  float* const packed_b = room_b.of(whole(std::min(kColumns, p.n), kTileColumns) * most);
  const auto compute = kHasPairs && p.rounded ? tile<true> : tile<false>;
  for (std::int64_t j = 0; j < p.n; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, p.n - j);
    for (std::int64_t k = 0; k < p.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.k - k);
      const bool on_tiles = kHasPairs && p.rounded && depth >= kLines && has_tile_products();
      const std::int64_t used = p.rounded ? lines_of(depth) : depth,
                         lines = on_tiles ? whole(used, kLines) : used;
      const bool add = p.add || k > 0;
      const SgemmFactor b{p.b.at + k * p.b.row + j * p.b.column, p.b.row, p.b.column};
      if (!p.rounded || p.b.column != 1) pack(b, columns, depth, packed_b);
      for (std::int64_t v = 0; p.rounded && v < columns; v += kTileColumns) {
        float* const to = packed_b + v * depth;
        const std::int64_t n = std::min(kTileColumns, columns - v);
        if (p.b.column == 1) round_lines(b.at + v, b.row, depth, n, 1, to, kTileColumns);
        else round_lines(to, kTileColumns, depth, kTileColumns, 1, to, kTileColumns);
        std::fill(to + used * kTileColumns, to + lines * kTileColumns, 0.0f);
      }
      for (std::int64_t i = 0; i < p.m; i += kRows) {
        const std::int64_t rows = std::min(kRows, p.m - i);
        SgemmFactor from{p.a.at + i * p.a.row + k * p.a.column, p.a.row, p.a.column};
        float* const c = p.c + i * p.c_row + j;
#ifdef __AVX512BF16__
        if (on_tiles) {
          round_rows(from, rows, depth, lines, p.scale, packed_a);
          begin_tiles();
          for (std::int64_t v = 0; v < columns; v += kBoth)
            for (std::int64_t r = 0; r < rows; r += kBoth)
              tiles(packed_a + r * lines,
                  packed_b + v / kTileColumns * kTileColumns * depth + v % kTileColumns, lines, add,
                  c + r * p.c_row + v, p.c_row, rows - r, columns - v);
          end_tiles();
          continue;
        }
#endif
        if (p.rounded) from = round_block(from, rows, depth, lines, p.scale, packed_a);
        else if (!as_it_is) pack(from, rows, depth, p.scale, packed_a);
        const bool in_panels = !as_it_is && !p.rounded;
        for (std::int64_t v = 0; v < columns; v += kTileColumns)
          for (std::int64_t r = 0; r < rows; r += kTileRows) {
            const std::int64_t n = std::min(kTileRows, rows - r);
            const float* a[kTileRows];
            for (std::int64_t q = 0; q < kTileRows; ++q)
              a[q] = in_panels ? packed_a + r * depth + q
                               : from.at + (r + std::min(q, n - 1)) * from.row;
            compute(a, in_panels ? kTileRows : from.column, packed_b + v * depth, lines, add,
                c + r * p.c_row + v, p.c_row, n, std::min(kTileColumns, columns - v));
          }
      }
    }
  }
}

}  // namespace nn
