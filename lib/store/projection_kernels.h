#pragma once
// The inner loops of a projection.

#include <cstddef>

namespace store {

/// Projects in (n, from) by matrix (to, from) to out (n, to).
void project_rows(const float* in, std::size_t n, const float* matrix, std::size_t from,
    std::size_t to, float* out);
/// Adds x x^T for each of n rows (n, width) to the upper triangle of sums (width, width).
void add_products(const float* rows, std::size_t n, std::size_t width, double* sums);

}  // namespace store
