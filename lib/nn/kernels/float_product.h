#pragma once
// Matrix products like those of gemm.h, for kernels that are templates over float and double.

#include "nn/kernels/gemm.h"

extern "C" void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
    const int* k, const double* alpha, const double* a, const int* lda, const double* b,
    const int* ldb, const double* beta, double* c, const int* ldc);

namespace nn {

/// Read says whether a product transposes its factor.
enum class Read { as_is, transposed };

/// Computes C = scale A B, or C += scale A B. After transposition A is (m, k) and B (k, n); C is
/// (m, n).
template <class Float>
void multiply(const MatrixOf<const Float>& a, Read read_a, const MatrixOf<const Float>& b,
    Read read_b, const MatrixOf<Float>& c, Into into = Into::fresh, Float scale = 1) {
  // The BLAS is column-major: it computes C^T = B^T A^T, with transposed factors.
  const char turn_a = read_a == Read::transposed ? 'T' : 'N',
             turn_b = read_b == Read::transposed ? 'T' : 'N';
  const int m = static_cast<int>(c.rows), n = static_cast<int>(c.columns),
            k = static_cast<int>(read_a == Read::transposed ? a.rows : a.columns),
            a_stride = static_cast<int>(a.stride), b_stride = static_cast<int>(b.stride),
            c_stride = static_cast<int>(c.stride);
  const Float keep = into == Into::sum ? 1 : 0;
  if constexpr (std::is_same_v<Float, float>)
    sgemm_(&turn_b, &turn_a, &n, &m, &k, &scale, b.data, &b_stride, a.data, &a_stride, &keep,
        c.data, &c_stride);
  else
    dgemm_(&turn_b, &turn_a, &n, &m, &k, &scale, b.data, &b_stride, a.data, &a_stride, &keep,
        c.data, &c_stride);
}

}  // namespace nn
