#include "store/projection_kernels.h"

namespace store {

void project_rows(const float* in, std::size_t n, const float* matrix, std::size_t from,
    std::size_t to, float* out) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < to; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < from; ++k) sum += in[i * from + k] * matrix[j * from + k];
      out[i * to + j] = sum;
    }
}

void add_products(const float* rows, std::size_t n, std::size_t width, double* sums) {
  for (std::size_t i = 0; i < n; ++i) {
    const float* const row = rows + i * width;
    for (std::size_t p = 0; p < width; ++p) {
      const double x = row[p];
      double* const to = sums + p * width;
      for (std::size_t q = p; q < width; ++q) to[q] += x * row[q];
    }
  }
}

}  // namespace store
