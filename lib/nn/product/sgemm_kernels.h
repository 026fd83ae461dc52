#pragma once
// Matrix products in float32 on the CPU, for processors on which the BLAS does not use the whole
// width of the registers (nn/product/sgemm.h). Goto and van de Geijn (2008): blocks of both factors
// are packed for the second-level cache, and a tile of the product stays in registers.

#include <cstdint>

namespace nn {

/// A factor's element (i, j) is at[i * row + j * column]; one of the two steps is 1.
struct SgemmFactor {
  const float* at;
  std::int64_t row, column;
};

/// C (m, n) = scale A (m, k) B (k, n), or C += that. Row i of C begins at c + i * c_row.
struct SgemmProduct {
  std::int64_t m, n, k;
  float scale;
  SgemmFactor a, b;
  bool add;
  float* c;
  std::int64_t c_row;
};

/// Rows and columns of a tile: products cut between tiles have the same bits as whole ones.
struct SgemmTile {
  std::int64_t rows, columns;
};
SgemmTile sgemm_tile();
/// Whether these kernels are for registers of 512 bits.
bool sgemm_is_wide();

/// On the calling thread.
void multiply(const SgemmProduct& product);

}  // namespace nn
