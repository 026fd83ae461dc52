#include "infer/sources/ngram_options.h"

#include <algorithm>

#include "core/error.h"

namespace infer {

std::int64_t ngram_bucket(std::uint64_t length, bool one) {
  const auto* const at =
      std::find_if(std::begin(kNgramLengths), std::end(kNgramLengths),
                   [&](std::int64_t most) { return length <= static_cast<std::uint64_t>(most); });
  return (at - std::begin(kNgramLengths)) + (one ? kNgramLengthBuckets : 0);
}

std::vector<double> NgramOptions::shares(double otherwise) const {
  if (lambda.gated()) return std::vector<double>(kNgramBuckets, 0);
  auto shares = lambda.values("--ngrams-lambda", otherwise);
  if (shares.size() == 1) shares.resize(kNgramBuckets, shares[0]);
  if (shares.size() != static_cast<std::size_t>(kNgramBuckets))
    core::fail(core::Code::usage, "--ngrams-lambda: takes 1 or {} weights, not {}", kNgramBuckets,
               shares.size());
  return shares;
}

}  // namespace infer
