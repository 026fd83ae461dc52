#pragma once
// The matrix product in float32 of the whole process: sgemm_, which torch, FAISS and the kernels
// call, is defined here. MKL, torch's BLAS, uses half of a register of 512 bits on processors that
// are not Intel's; where that is half the speed, large products are done by
// nn/product/sgemm_kernels.h. All others are the BLAS's. The build option TESSERA_SGEMM leaves this
// folder out; bench_product compares the two, and where its ratios are 1 on a Zen 5 the folder can
// go.

#include "nn/kernels/gemm.h"

namespace nn {

/// Whether it is faster to do large products here: on AMD's processors from Zen 5 on, with kernels
/// for AVX-512.
bool products_pay();
/// Whether large products are done here; at first where it pays. To compare the two.
void take_products(bool on);
/// The BLAS's sgemm_.
decltype(&sgemm_) blas_sgemm();

}  // namespace nn
