#pragma once
// Float32 matrix products on CPUs where the BLAS does not use the full register width
// (nn/product/sgemm.h). Packs blocks of both factors for the second-level cache and keeps a tile of
// the product in registers (Goto and van de Geijn 2008).

#include <cstdint>

namespace nn {

/// A factor whose element (i, j) is at[i * row + j * column]; one of the two strides is 1.
struct SgemmFactor {
  const float* at;
  std::int64_t row, column;
};

/// The product C (m, n) = scale A (m, k) B (k, n), or C += that product if `add`. Row i of C begins
/// at c + i * c_row.
struct SgemmProduct {
  std::int64_t m, n, k;
  float scale;
  SgemmFactor a, b;
  bool add;
  float* c;
  std::int64_t c_row;
  /// Rounds the factors, A times `scale`, to bfloat16. Sums are float32. With kernels for AVX-512
  /// BF16, this is up to twice as fast on AMD's processors; with kernels for AMX, on its tiles, up
  /// to four times.
  bool rounded = false;
};

/// Rows and columns of a tile. Products divided at tile boundaries are bit-identical to whole ones.
struct SgemmTile {
  std::int64_t rows, columns;
};
SgemmTile sgemm_tile();
/// Returns whether these kernels use 512-bit registers.
bool sgemm_is_wide();

/// Computes the product on the calling thread.
void multiply(const SgemmProduct& product);

}  // namespace nn
