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

void NgramOptions::fields(core::FieldList& f) {
  const auto in_ngrams = f.group("N-grams");
  f("ngrams", folders, "folder of an index of n-grams (build-ngrams); again for more");
  f("ngrams-lambda", *lambda.target(),
    "their share: one for all, or 20, as --tune finds them, "
    "by the length of the suffix that they have and whether one token only followed it; or gate");
}

std::vector<double> NgramOptions::shares(double otherwise) const {
  if (lambda.gated()) return std::vector<double>(kNgramBuckets, 0);
  auto shares = lambda.values("--ngrams-lambda", otherwise);
  if (shares.size() == 1) shares.resize(kNgramBuckets, shares[0]);
  if (shares.size() != static_cast<std::size_t>(kNgramBuckets))
    core::fail(core::Code::usage, "--ngrams-lambda: takes 1 or {} shares, not {}", kNgramBuckets,
               shares.size());
  return shares;
}

}  // namespace infer
