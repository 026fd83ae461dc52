#pragma once
// The loops of a projection.

#include <cstddef>

namespace store {

/// in (n, from), matrix (to, from) -> out (n, to).
void project_rows(const float* in, std::size_t n, const float* matrix, std::size_t from,
                  std::size_t to, float* out);
/// Adds x x^T of each of n rows (n, width) to the upper half of sums (width, width).
void add_products(const float* rows, std::size_t n, std::size_t width, double* sums);

}  // namespace store
