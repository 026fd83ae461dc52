#include "nn/kernels/sgemm_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/vector_math.h"

namespace nn {
namespace {

using Lanes = vec::Floats;
constexpr bool kWide = vec::kFloats == 16;
// A tile: its sums fill most of the registers.
constexpr std::int64_t kVectors = kWide ? 4 : 2, kTileRows = kWide ? 6 : 4,
                       kTileColumns = kVectors * vec::kFloats;
// Blocks: terms of a sum; rows of A (192 KiB) and columns of B (512 KiB).
constexpr std::int64_t kDepth = 256, kRows = 192, kColumns = 512;

std::int64_t whole(std::int64_t n, std::int64_t of) { return (n + of - 1) / of * of; }

// Floats at the start of a cache line.
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

// Panels of kTileRows rows, in each a column after the other; rows that are not there are zero.
void pack(const SgemmFactor& a, std::int64_t rows, std::int64_t depth, float scale, float* to) {
  for (std::int64_t i = 0; i < rows; i += kTileRows, to += kTileRows * depth) {
    const float* const from = a.at + i * a.row;
    const std::int64_t n = std::min(kTileRows, rows - i);
    if (n < kTileRows) {
      std::fill(to, to + kTileRows * depth, 0.0f);
      for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t k = 0; k < depth; ++k)
          to[k * kTileRows + r] = scale * from[r * a.row + k * a.column];
    } else if (a.row == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t r = 0; r < kTileRows; ++r)
          to[k * kTileRows + r] = scale * from[r + k * a.column];
    } else {
      for (std::int64_t r = 0; r < kTileRows; ++r)
        for (std::int64_t k = 0; k < depth; ++k)
          to[k * kTileRows + r] = scale * from[r * a.row + k];
    }
  }
}

// Panels of kTileColumns columns, in each a row after the other; columns that are not there are zero.
void pack(const SgemmFactor& b, std::int64_t columns, std::int64_t depth, float* to) {
  constexpr std::int64_t kStrip = 16;  // rows whose lines stay in the first-level cache
  for (std::int64_t j = 0; j < columns; j += kTileColumns, to += kTileColumns * depth) {
    const float* const from = b.at + j * b.column;
    const std::int64_t n = std::min(kTileColumns, columns - j);
    if (n < kTileColumns) std::fill(to, to + kTileColumns * depth, 0.0f);
    if (b.column == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        std::copy_n(from + k * b.row, n, to + k * kTileColumns);
      continue;
    }
    for (std::int64_t begin = 0; begin < depth; begin += kStrip) {
      const std::int64_t end = std::min(begin + kStrip, depth);
      for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t k = begin; k < end; ++k)
          to[k * kTileColumns + c] = from[c * b.column + k];
    }
  }
}

// One tile of C from a panel of A and one of B.
void tile(const float* a, const float* b, std::int64_t depth, bool add, float* c,
          std::int64_t c_row) {
  Lanes sum[kTileRows][kVectors] = {};
  for (std::int64_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    Lanes row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      row[v] = *reinterpret_cast<const Lanes*>(b + v * vec::kFloats);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      const float x = a[i];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Lanes& to = *reinterpret_cast<Lanes*>(c + i * c_row + v * vec::kFloats);
      to = add ? to + sum[i][v] : sum[i][v];
    }
}

// The same where C has only `rows` x `columns` of it.
void edge(const float* a, const float* b, std::int64_t depth, bool add, float* c,
          std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  alignas(64) float room[kTileRows * kTileColumns];
  tile(a, b, depth, /*add=*/false, room, kTileColumns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      float& to = c[i * c_row + j];
      to = add ? to + room[i * kTileColumns + j] : room[i * kTileColumns + j];
    }
}

}  // namespace

SgemmTile sgemm_tile() { return {kTileRows, kTileColumns}; }

bool sgemm_is_wide() { return kWide; }

void multiply(const SgemmProduct& p) {
  thread_local Room room_a, room_b;
  const std::int64_t most = std::min(kDepth, p.k);
  float* const packed_a = room_a.of(whole(std::min(kRows, p.m), kTileRows) * most);
  float* const packed_b = room_b.of(whole(std::min(kColumns, p.n), kTileColumns) * most);
  for (std::int64_t j = 0; j < p.n; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, p.n - j);
    for (std::int64_t k = 0; k < p.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.k - k);
      const bool add = p.add || k > 0;
      pack({p.b.at + k * p.b.row + j * p.b.column, p.b.row, p.b.column}, columns, depth, packed_b);
      for (std::int64_t i = 0; i < p.m; i += kRows) {
        const std::int64_t rows = std::min(kRows, p.m - i);
        pack({p.a.at + i * p.a.row + k * p.a.column, p.a.row, p.a.column}, rows, depth, p.scale,
             packed_a);
        for (std::int64_t v = 0; v < columns; v += kTileColumns)
          for (std::int64_t r = 0; r < rows; r += kTileRows) {
            const float *const a = packed_a + r * depth, *const b = packed_b + v * depth;
            float* const c = p.c + (i + r) * p.c_row + j + v;
            if (rows - r >= kTileRows && columns - v >= kTileColumns) {
              tile(a, b, depth, add, c, p.c_row);
            } else {
              edge(a, b, depth, add, c, p.c_row, std::min(kTileRows, rows - r),
                   std::min(kTileColumns, columns - v));
            }
          }
      }
    }
  }
}

}  // namespace nn
