#pragma once
// Options of n-gram indices at test time.

#include <cstdint>
#include <string>
#include <vector>

#include "infer/sources/share.h"

namespace infer {

/// Upper bounds of the suffix-length buckets. The weight of n-grams depends on the length of the
/// matching suffix and on whether only one token has followed it.
inline constexpr std::int64_t kNgramLengths[] = {0, 1, 2, 3, 4, 6, 9, 15, 31};
inline constexpr std::int64_t kNgramLengthBuckets = std::size(kNgramLengths) + 1;
/// Number of buckets: the lengths with several next tokens, then the lengths with one.
inline constexpr std::int64_t kNgramBuckets = 2 * kNgramLengthBuckets;
std::int64_t ngram_bucket(std::uint64_t length, bool one);

struct NgramOptions {
  std::vector<std::string> folders;
  ShareList lambda;  ///< one weight for all, one for each bucket, or gate

  bool any() const { return !folders.empty(); }
  /// Returns one weight for each bucket; zeros for a gate, `otherwise` if unset. Throws
  /// Error{usage} for any other number of weights.
  std::vector<double> shares(double otherwise = 0.1) const;
};

}  // namespace infer
