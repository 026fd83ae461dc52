#pragma once
// Which indices of n-grams take part at test time, and with what share.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/sources/share.h"

namespace infer {

/// The share of n-grams depends on how long the suffix of the context is that they have, and on
/// whether one token only has followed it: so many lengths, each up to this one.
inline constexpr std::int64_t kNgramLengths[] = {0, 1, 2, 3, 4, 6, 9, 15, 31};
inline constexpr std::int64_t kNgramLengthBuckets = std::size(kNgramLengths) + 1;
/// Buckets: the lengths where several tokens have followed, then those where one has.
inline constexpr std::int64_t kNgramBuckets = 2 * kNgramLengthBuckets;
std::int64_t ngram_bucket(std::uint64_t length, bool one);

struct NgramOptions {
  std::vector<std::string> folders;
  ShareList lambda;  ///< one for all, or one for each bucket, or gate
  void fields(core::FieldList& f);

  bool any() const { return !folders.empty(); }
  /// One for each bucket; zeros for a gate, `otherwise` where they are open. Throws Error{usage}
  /// for another number of them.
  std::vector<double> shares(double otherwise = 0.1) const;
};

}  // namespace infer
