#pragma once
// Row-major single precision matrix product on the BLAS that torch brings. Inside a parallel region
// it runs on one thread, so that loops over sequences can call it.

#include <cstdint>

extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace nn {

enum class Op : char { plain = 'N', transposed = 'T' };

/// C (m, n) = alpha op(A) op(B) + beta C, all row-major; lda, ldb, ldc are row strides as stored.
inline void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                 const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                 float* c, std::int64_t ldc) {
  const char ta = static_cast<char>(op_a), tb = static_cast<char>(op_b);
  const int im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
  const int ia = static_cast<int>(lda), ib = static_cast<int>(ldb), ic = static_cast<int>(ldc);
  sgemm_(&tb, &ta, &in, &im, &ik, &alpha, b, &ib, a, &ia, &beta, c,
         &ic);  // column-major sees the transposes
}

}  // namespace nn
