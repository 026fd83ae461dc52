#pragma once
// Eigenvectors of a symmetric matrix.

#include <cstddef>
#include <span>
#include <vector>

namespace store {

struct Eigen {
  std::vector<double> values;   ///< (n), the largest first
  std::vector<double> vectors;  ///< (n, n): row i belongs to value i, of length 1
};

/// By Jacobi's rotations: rows p and q are turned so that element (p, q) becomes 0, for all pairs
/// in turn, until none is above 1e-14 of the largest. `matrix` (n, n), of which the lower half is
/// not read. About 50 n^3 operations.
Eigen symmetric_eigen(std::vector<double> matrix, std::size_t n);

}  // namespace store
