#pragma once
// N-grams of other texts: the counts of tokens that followed the longest matching suffix of the
// context (Liu et al. 2024, infini-gram). They are a distribution of their own, whose weight
// depends on the length of the suffix.

#include "infer/sources/memory_weight.h"
#include "ngrams/ngram_index.h"

namespace infer {

/// Upper bounds of the suffix-length buckets. The weight of n-grams depends on the length of the
/// matching suffix and on whether only one token has followed it.
inline constexpr std::int64_t kNgramLengths[] = {0, 1, 2, 3, 4, 6, 9, 15, 31};
inline constexpr std::int64_t kNgramLengthBuckets = std::size(kNgramLengths) + 1;
/// Number of buckets: the lengths with several next tokens, then the lengths with one.
inline constexpr std::int64_t kNgramBuckets = 2 * kNgramLengthBuckets;
std::int64_t ngram_bucket(std::uint64_t length, bool one);

/// Returns one weight for each bucket; zeros for a gate, `otherwise` if unset. Throws Error{usage}
/// with the flag's name for any other number of weights.
std::vector<double> ngram_weights(
    const MemoryWeights& lambda, const char* flag, double otherwise = 0.1);

struct NgramOptions {
  std::vector<std::string> folders;
  MemoryWeights lambda;  ///< one weight for all, one for each bucket, or gate

  bool any() const { return !folders.empty(); }
};

/// Resolved NgramOptions. The mixture interpolates n-grams with all other sources by the weight of
/// the context's bucket.
struct NgramPlan {
  std::shared_ptr<const ngrams::Index> index;  ///< null: no n-grams
  std::vector<double> lambda;                  ///< weight of each bucket
  bool any() const { return index != nullptr; }
};

}  // namespace infer
