#pragma once
// Float32 matrix product of the whole process: defines sgemm_, which LibTorch, FAISS and the
// kernels call. MKL, LibTorch's BLAS, uses half of the 512-bit registers on processors of other
// vendors than Intel. Where this halves the speed, nn/product/sgemm_kernels.h computes large
// products; the BLAS computes all others. The build option TESSERA_SGEMM removes this folder;
// bench_product compares both, and the folder is obsolete once its ratios are 1 on a Zen 5.

#include "nn/kernels/gemm.h"

namespace nn {

/// Returns whether these kernels are faster for large products: on AMD processors since Zen 5, with
/// AVX-512 kernels.
bool products_pay();
/// Turns these kernels on or off, for comparisons; initially products_pay().
void take_products(bool on);
/// Returns the BLAS's sgemm_.
decltype(&sgemm_) blas_sgemm();

}  // namespace nn
