#include "infer/decode/tile_kernels.h"

#include "infer/decode/lanes.h"
#include "nn/kernels/square.h"
#include "nn/kernels/tiles.h"

namespace infer {
#ifdef __AVX512F__
namespace {

using Ints = std::int32_t __attribute__((vector_size(64)));

// A tile has kSide lines of kDepth pairs. A block has kDepth steps of 32 numbers, of sixteen rows
// or outputs: a tile for each lane.
constexpr std::int64_t kDepth = 16, kLanes = 16, kSide = 16, kBoth = 2 * kSide, kStep = 32;
constexpr std::int64_t kTile = kSide * kDepth, kBlock = kLanes * kTile, kLineBytes = 64,
                       kTileBytes = kSide * kLineBytes;
constexpr std::int64_t kSums = 4, kOutputs = 4, kFewRows = 2;

// The pairs (k + l, k + 16 + l) of numbers p[k], for each lane l; zeros past `in`. The lower halves
// of the numbers are zero.
template <class Number> inline Ints pairs(const Number* p, std::int64_t k, std::int64_t in) {
  const auto load = [&](std::int64_t at) {
    return _mm512_castps_si512(at < in ? Lanes::load(p + at).v : _mm512_setzero_ps());
  };
  return (Ints)_mm512_or_si512(_mm512_srli_epi32(load(k), 16), load(k + kLanes));
}

// Writes sixteen rows, of which row(i) is one, as blocks of tiles: lines are steps if `by_step`,
// else rows.
template <bool by_step, class Row>
void to_tiles(const Row& row, std::int64_t in, std::int32_t* to) {
  for (std::int64_t begin = 0; begin < in; begin += kStep * kDepth, to += kBlock)
    for (std::int64_t line = 0; line < kSide; ++line) {
      Ints square[kSide];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kSide; ++i)
        square[i] = pairs(row(by_step ? i : line), begin + kStep * (by_step ? line : i), in);
      nn::vec::transpose(square, to + line * kDepth, kTile);
    }
}

// Computes the four sums of a row, x, by kOutputs outputs as tiles do. It prefetches the outputs
// that follow.
template <class Weight>
[[gnu::noinline]] void four_sums(const std::uint16_t* x, const Weight* const (&w)[kOutputs],
    const Weight* next, std::int64_t in, __m128 (&sums)[kOutputs]) {
  for (auto& sum : sums) sum = _mm_setzero_ps();
  for (std::int64_t begin = 0; begin < in; begin += kStep * kDepth) {
    Lanes halves[2][kOutputs];
    for (std::int64_t k = begin; k < std::min(in, begin + kStep * kDepth); k += kLanes) {
      for (std::size_t line = 0; line < sizeof(Weight); ++line)
        __builtin_prefetch(next + kOutputs * k + line * kStep, 0, 3);
      for (std::int64_t o = 0; o < kOutputs; ++o)
        halves[k / kLanes % 2][o].add_product(Lanes::load(w[o] + k), Lanes::load(x + k));
    }
    for (std::int64_t o = 0; o < kOutputs; ++o) {
      const __m512 lanes = _mm512_add_ps(halves[0][o].v, halves[1][o].v);
      sums[o] = _mm_add_ps(sums[o], _mm512_castps512_ps128(lanes));
      sums[o] = _mm_add_ps(sums[o], _mm512_extractf32x4_ps(lanes, 1));
      sums[o] = _mm_add_ps(sums[o], _mm512_extractf32x4_ps(lanes, 2));
      sums[o] = _mm_add_ps(sums[o], _mm512_extractf32x4_ps(lanes, 3));
    }
  }
}

}  // namespace

template <class Weight>
void multiply_tiles(const TileWeights<Weight>& weights, const float* x, std::int64_t rows,
    std::int64_t ldx, std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy) {
  const auto in = weights.stride, all = (in + kStep * kDepth - 1) / (kStep * kDepth) * kBlock;
  const auto output = [&](std::int64_t o) {  // those past the end are computed and dropped
    return weights.rows + std::min(o, weights.out - 1) * in;
  };
  const auto write = [&](std::int64_t r, std::int64_t o, float a, float b, float c, float d) {
    y[r * ldy + o] = ((a + c) + (b + d)) * (weights.scales == nullptr ? 1 : weights.scales[o]);
  };
  thread_local std::vector<std::uint16_t> halves;
  thread_local std::vector<Line> x_lines, w_lines;
  const auto room = [&](std::vector<Line>& of, std::int64_t tiles) {
    return reinterpret_cast<std::int32_t*>(at_least(of, tiles * all / kDepth)->at);
  };
  std::uint16_t* const rounded = at_least(halves, rows * in);
  const auto x_tiles = room(x_lines, 2 * ((rows + kBoth - 1) / kBoth)), w_tiles = room(w_lines, 2);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < in; ++k) rounded[r * in + k] = to_bfloat16(x[r * ldx + k]);
  const auto before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // numbers below the smallest normal one count as zero
  if (rows <= kFewRows) {
    for (std::int64_t o = begin; o < end; o += kOutputs)
      for (std::int64_t r = 0; r < rows; ++r) {
        __m128 sums[kOutputs];
        four_sums<Weight>(rounded + r * in,
            {output(o), output(o + 1), output(o + 2), output(o + 3)}, output(o + kOutputs), in,
            sums);
        for (std::int64_t i = 0; i < std::min(kOutputs, end - o); ++i)
          write(r, o + i, sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      }
  } else {
    for (std::int64_t r = 0; r < rows; r += kSide)
      to_tiles<false>([&](std::int64_t i) { return rounded + std::min(r + i, rows - 1) * in; }, in,
          x_tiles + r / kSide * all);
    nn::begin_tiles();
    alignas(64) float sums[kSums][kBoth][kBoth];
    for (std::int64_t o = begin; o < end; o += kBoth) {
      for (std::int64_t i = 0; i < 2; ++i)
        to_tiles<true>(
            [&](std::int64_t j) { return output(o + kSide * i + j); }, in, w_tiles + i * all);
      for (std::int64_t first = 0; first < rows; first += kBoth) {
        const auto tiles_of = [&](const std::int32_t* at) {
          return nn::TilePairs{at, all / kTile * kTileBytes, kLineBytes, kSums * kTileBytes};
        };
        for (std::int64_t s = 0; s < kSums; ++s)
          nn::add_tiles(tiles_of(x_tiles + first / kSide * all + s * kTile),
              tiles_of(w_tiles + s * kTile), all / kTile / kSums, sums[s][0]);
        for (std::int64_t r = 0; r < std::min(kBoth, rows - first); ++r)
          for (std::int64_t i = 0; i < std::min(kBoth, end - o); ++i)
            write(first + r, o + i, sums[0][r][i], sums[1][r][i], sums[2][r][i], sums[3][r][i]);
      }
    }
    nn::end_tiles();
  }
  _mm_setcsr(before);
}

bool has_tile_products() { return nn::has_tile_products(); }
#else
bool has_tile_products() { return false; }

// Not called, since there are no tiles.
template <class Weight>
void multiply_tiles(const TileWeights<Weight>&, const float*, std::int64_t, std::int64_t,
    std::int64_t, std::int64_t, float*, std::int64_t) {}
#endif

template void multiply_tiles(const TileWeights<std::uint16_t>&, const float*, std::int64_t,
    std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void multiply_tiles(const TileWeights<std::int8_t>&, const float*, std::int64_t,
    std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);

}  // namespace infer
