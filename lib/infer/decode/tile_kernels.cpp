#include "infer/decode/tile_kernels.h"

#include <vector>

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
constexpr std::int64_t kTile = kSide * kDepth, kBlock = kLanes * kTile, kLineBytes = 64;
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

[[gnu::target("amx-tile")]] void begin_tiles() { _tile_loadconfig(&nn::kTileShapes); }
[[gnu::target("amx-tile")]] void end_tiles() { _tile_release(); }

// Computes the four sums of 32 rows by 32 outputs of `all` pairs for each sixteen.
[[gnu::target("amx-tile,amx-bf16")]] void four_sums(
    const std::int32_t* x, const std::int32_t* w, std::int64_t all, float (*sums)[kBoth][kBoth]) {
  asm("" ::: "memory");  // gcc 12 does not know that _tile_loadd reads memory
  for (std::int64_t s = 0; s < kSums; ++s) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t at = s * kTile; at < all; at += kSums * kTile) {  // block by block
      _tile_loadd(4, x + at, kLineBytes);
      _tile_loadd(5, x + all + at, kLineBytes);
      _tile_loadd(6, w + at, kLineBytes);
      _tile_loadd(7, w + all + at, kLineBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums[s][0], 2 * kLineBytes);
    _tile_stored(1, sums[s][0] + kSide, 2 * kLineBytes);
    _tile_stored(2, sums[s][kSide], 2 * kLineBytes);
    _tile_stored(3, sums[s][kSide] + kSide, 2 * kLineBytes);
  }
}

// Computes the same of one row by kOutputs outputs. It prefetches the outputs that follow.
template <class Weight>
[[gnu::noinline]] void four_sums(const float* x, const Weight* const (&w)[kOutputs],
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

float rounded(float value) {  // to bfloat16, to even
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
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
  thread_local std::vector<float> halves;
  thread_local std::vector<Line> x_lines, w_lines;
  const auto room = [&](std::vector<Line>& of, std::int64_t tiles) {
    return reinterpret_cast<std::int32_t*>(at_least(of, tiles * all / kDepth)->at);
  };
  float* const rounded_x = at_least(halves, rows * in);
  const auto x_tiles = room(x_lines, 2 * ((rows + kBoth - 1) / kBoth)), w_tiles = room(w_lines, 2);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < in; ++k) rounded_x[r * in + k] = rounded(x[r * ldx + k]);
  const auto before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // numbers below the smallest normal one count as zero
  for (std::int64_t o = begin; rows <= kFewRows && o < end; o += kOutputs)
    for (std::int64_t r = 0; r < rows; ++r) {
      __m128 sums[kOutputs];
      four_sums<Weight>(rounded_x + r * in,
          {output(o), output(o + 1), output(o + 2), output(o + 3)}, output(o + kOutputs), in, sums);
      for (std::int64_t i = 0; i < std::min(kOutputs, end - o); ++i)
        write(r, o + i, sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    }
  for (std::int64_t r = 0; rows > kFewRows && r < rows; r += kSide)
    to_tiles<false>([&](std::int64_t i) { return rounded_x + std::min(r + i, rows - 1) * in; }, in,
        x_tiles + r / kSide * all);
  begin_tiles();
  alignas(64) float sums[kSums][kBoth][kBoth];
  for (std::int64_t o = begin; rows > kFewRows && o < end; o += kBoth) {
    for (std::int64_t i = 0; i < 2; ++i)
      to_tiles<true>(
          [&](std::int64_t j) { return output(o + kSide * i + j); }, in, w_tiles + i * all);
    for (std::int64_t first = 0; first < rows; first += kBoth) {
      four_sums(x_tiles + first / kSide * all, w_tiles, all, sums);
      for (std::int64_t r = 0; r < std::min(kBoth, rows - first); ++r)
        for (std::int64_t i = 0; i < std::min(kBoth, end - o); ++i)
          write(first + r, o + i, sums[0][r][i], sums[1][r][i], sums[2][r][i], sums[3][r][i]);
    }
  }
  end_tiles();
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
