#pragma once
// Products in bfloat16 on tiles (AMX): of 16 x 32 by 32 x 16 numbers in 16 cycles.
//
// For a row x and a row w of weights, rounded to bfloat16, number 32 j + l (l < 16) is multiplied
// into an even sum of lane l, number 32 j + 16 + l into an odd one, in the order of j. After
// sixteen j, the two are added to each other, then to sum l % 4 of four, and begin anew. So does a
// tile; numbers below the smallest normal one count as zero. Few rows are computed so without tiles
// (fused multiply-add), with the same bits.

#include <cstdint>

namespace infer {

/// Returns nn::has_tile_products() if the kernels are built for AVX-512, else false.
bool has_tile_products();

/// Rows (out, stride) of weights: upper halves of floats, or int8.
template <class Weight> struct TileWeights {
  const Weight* rows;
  std::int64_t out, stride;  ///< stride: a multiple of 16
  const float* scales;       ///< of each row; null: 1
};

/// Computes y[r][o] = x[r] . weight[o] scale[o] for outputs [begin, end); x (rows, stride) in
/// float32 has row stride ldx, y row stride ldy. The result of a row does not depend on `rows`.
/// Only if has_tile_products().
template <class Weight>
void multiply_tiles(const TileWeights<Weight>& weights, const float* x, std::int64_t rows,
    std::int64_t ldx, std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy);

}  // namespace infer
