#pragma once
// Projects a model's keys and queries to fewer dimensions.

#include "store/half.h"
#include "store/manifest.h"

namespace store {

/// Eigen holds eigenvalues and eigenvectors.
struct Eigen {
  std::vector<double> values;   ///< shape (n), largest first
  std::vector<double> vectors;  ///< shape (n, n): row i is the unit vector for value i
};

/// Computes the eigenvectors of a symmetric matrix (n, n) by LAPACK's dsyev; its lower triangle is
/// not read.
Eigen symmetric_eigen(std::vector<double> matrix, std::size_t n);

/// A Projection is y = W x, with W (D, d) in float16. The rows of W are the principal components of
/// a sample of keys: around the mean for l2, whose distances are translation invariant, and around
/// 0 for ip, whose products are not. Const calls are thread safe.
class Projection {
 public:
  Projection() = default;  ///< no projection
  /// Learns W from evenly spaced rows of keys (N, d): max(16,384, 64 d) rows, but at most 65,536.
  /// Throws Error{bad_data} for fewer rows than `to`.
  static Projection learn(
      std::span<const Half> keys, std::uint64_t width, std::uint64_t to, Metric metric);
  /// Takes W (to, from) in row-major order.
  Projection(std::vector<Half> matrix, std::uint64_t from, std::uint64_t to);

  bool any() const { return to_ > 0; }
  std::uint64_t from() const { return from_; }
  std::uint64_t to() const { return to_; }
  std::span<const Half> matrix() const { return matrix_; }
  /// Projects in (n, from) to (n, to).
  std::vector<float> apply(std::span<const float> in) const;

 private:
  std::uint64_t from_ = 0, to_ = 0;
  std::vector<Half> matrix_;
  std::vector<float> floats_;
};

/// Writes W (to, from) as float16 and returns the XXH3-128 of its elements.
core::Digest write_projection(const std::string& path, const Projection& projection);
/// Reads W. Throws Error{bad_data} for another shape or hash, Error{no_input} if the file does not
/// exist.
Projection read_projection(
    const std::string& path, std::uint64_t from, std::uint64_t to, const std::string& hash);

}  // namespace store
