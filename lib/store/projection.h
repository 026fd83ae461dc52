#pragma once
// Keys of fewer numbers: what a matrix makes of those of a model, and of its queries.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/half.h"
#include "store/manifest.h"

namespace store {

/// y = W x, W (D, d) in float16. W's rows are the directions in which a sample of keys has most
/// (principal components): around their mean for l2, whose distances know no origin; around 0 for
/// ip, whose products do. Thread safe once it is made.
class Projection {
 public:
  Projection() = default;  ///< none
  /// From a sample of keys (N, d), spread evenly over them: 16,384 rows, or 64 d if that is more,
  /// but at most 65,536. Throws Error{bad_data} for fewer rows than `to`.
  static Projection learn(std::span<const Half> keys, std::uint64_t width, std::uint64_t to,
                          Metric metric);
  /// W (to, from), row after row.
  Projection(std::vector<Half> matrix, std::uint64_t from, std::uint64_t to);

  bool any() const { return to_ > 0; }
  std::uint64_t from() const { return from_; }
  std::uint64_t to() const { return to_; }
  std::span<const Half> matrix() const { return matrix_; }
  /// in (n, from) -> (n, to).
  std::vector<float> apply(std::span<const float> in) const;

 private:
  std::uint64_t from_ = 0, to_ = 0;
  std::vector<Half> matrix_;
  std::vector<float> floats_;
};

/// Writes W (to, from) as float16 and returns the XXH3-128 of its elements.
core::Digest write_projection(const std::string& path, const Projection& projection);
/// Throws Error{bad_data} for another shape or hash, Error{no_input} if it is not there.
Projection read_projection(const std::string& path, std::uint64_t from, std::uint64_t to,
                           const std::string& hash);

}  // namespace store
