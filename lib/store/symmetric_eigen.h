#pragma once
// Computes the eigenvectors of a symmetric matrix.

#include "core/base.h"

namespace store {

/// Eigen holds eigenvalues and eigenvectors.
struct Eigen {
  std::vector<double> values;   ///< shape (n), largest first
  std::vector<double> vectors;  ///< shape (n, n): row i is the unit vector for value i
};

/// Computes the eigenvectors by Jacobi rotations. Each rotation zeroes one element (p, q); the
/// rotations visit all pairs in turn until no off-diagonal element exceeds 1e-14 of the largest
/// element. `matrix` is (n, n); its lower triangle is not read. Takes about 50 n^3 operations.
Eigen symmetric_eigen(std::vector<double> matrix, std::size_t n);

}  // namespace store
