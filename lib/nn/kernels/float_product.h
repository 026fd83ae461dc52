#pragma once
// Matrix products as gemm.h has them, for kernels that are written once for float and double.

#include <cstdint>
#include <type_traits>

#include "nn/kernels/gemm.h"

extern "C" void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const double* alpha, const double* a, const int* lda,
                       const double* b, const int* ldb, const double* beta, double* c,
                       const int* ldc);

namespace nn {

/// How a factor of a product is read.
enum class Read { as_is, turned };

/// scale A B goes into C, or is added to what is there. A (m, k), B (k, n), C (m, n), after the
/// factors are turned.
template <class Float>
void multiply(const MatrixOf<const Float>& a, Read read_a, const MatrixOf<const Float>& b,
              Read read_b, const MatrixOf<Float>& c, Into into = Into::fresh, Float scale = 1) {
  // A column-major C is C^T = B^T A^T, and the factors are seen turned too.
  const char turn_a = read_a == Read::turned ? 'T' : 'N',
             turn_b = read_b == Read::turned ? 'T' : 'N';
  const int m = static_cast<int>(c.rows), n = static_cast<int>(c.columns),
            k = static_cast<int>(read_a == Read::turned ? a.rows : a.columns),
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
