#include "nn/product/sgemm.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "nn/product/sgemm_kernels.h"

namespace nn {
namespace {

std::atomic<bool> taken = products_pay();

// Below these sizes packing costs more than it saves.
constexpr std::int64_t kLeastSide = 16, kLeastTerms = 16, kLeastWork = 1 << 15;
// Least number of multiplications that pays for a further thread.
constexpr std::int64_t kWorkOfThread = 1 << 21;

// Whether the processor is a Zen 5: AMD's family 1Ah.
bool is_zen_5() {
#if defined(__x86_64__)
  unsigned highest = 0, b = 0, c = 0, d = 0, signature = 0;
  if (__get_cpuid(0, &highest, &b, &c, &d) == 0 || b != signature_AMD_ebx ||
      c != signature_AMD_ecx || d != signature_AMD_edx)
    return false;
  if (__get_cpuid(1, &signature, &b, &c, &d) == 0) return false;
  const unsigned family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
  return family >= 0x1a;
#else
  return false;
#endif
}

bool pays(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m >= kLeastSide && n >= kLeastSide && k >= kLeastTerms && m * n * k >= kLeastWork;
}

// Gives each thread a part of the rows or of the columns.
void multiply_together(const SgemmProduct& all) {
  const bool by_rows = all.m >= all.n;
  const std::int64_t side = by_rows ? all.m : all.n, other = by_rows ? all.n : all.m,
                     unit = by_rows ? sgemm_tile().rows : sgemm_tile().columns;
  const std::int64_t units = (side + unit - 1) / unit,
                     least = std::max<std::int64_t>(1, kWorkOfThread / (unit * other * all.k));
  at::parallel_for(0, units, least, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * unit, n = std::min(last * unit, side) - begin;
    SgemmProduct part = all;
    if (by_rows) {
      part.m = n, part.a.at += begin * all.a.row, part.c += begin * all.c_row;
    } else {
      part.n = n, part.b.at += begin * all.b.column, part.c += begin;
    }
    multiply(part);
  });
}

bool is_turned(char c) { return c == 'T' || c == 't' || c == 'C' || c == 'c'; }

}  // namespace

void take_products(bool on) { taken = on; }

bool products_pay() {
  static const bool pay = sgemm_is_wide() && is_zen_5();
  return pay;
}

decltype(&sgemm_) blas_sgemm() {
  static const auto next = reinterpret_cast<decltype(&sgemm_)>(::dlsym(RTLD_NEXT, "sgemm_"));
  return next;
}

}  // namespace nn

// BLAS matrices are column-major: this computes C^T = B^T A^T in row-major order.
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
    const int* k, const float* alpha, const float* a, const int* lda, const float* b,
    const int* ldb, const float* beta, float* c, const int* ldc) {
  const bool add = *beta == 1;
  const bool rounded = nn::RoundedProducts::on();
  if (!(nn::taken || rounded) || !nn::pays(*n, *m, *k) || (!add && *beta != 0) || *alpha == 0) {
    nn::blas_sgemm()(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  const auto factor = [](const float* at, int stride, char turned) {
    return nn::is_turned(turned) ? nn::SgemmFactor{at, 1, stride} : nn::SgemmFactor{at, stride, 1};
  };
  nn::multiply_together({*n, *m, *k, *alpha, factor(b, *ldb, *transpose_b),
      factor(a, *lda, *transpose_a), add, c, *ldc, rounded});
}
