#pragma once
// Totals of a scored text and the results computed from them.

#include <cstdint>
#include <optional>

#include "infer/sources/source.h"

namespace infer {

/// Statistics about gates.
struct GateTotals {
  double constant_nats = 0;  ///< nats of the mixture at the best constant weights
  std::uint64_t worse = 0;   ///< tokens with a lower probability than at the constant weights
  bool compared = false;     ///< both numbers are valid: no search was skipped
};

/// Sums over scored tokens. Bytes and words are those of the source text: a document counts in
/// proportion to its scored tokens (all but the first of a stream, which has no context). If a
/// protocol discounts a window, all sums discount it.
struct Totals {
  double nats = 0;  ///< sum of -log p
  std::uint64_t tokens = 0;
  double bytes = 0, words = 0;
  double seconds = 0;
  std::optional<SearchCounts> searches = {};  ///< if searches may be skipped
  std::optional<GateTotals> gates = {};       ///< if weights have gates

  double loss() const;        ///< nats a token; NaN without tokens
  double perplexity() const;  ///< exp(loss)
  double bits_per_token() const;
  double bits_per_byte() const;  ///< NaN if the data lack byte counts; likewise for words
  double bits_per_word() const;
  double byte_perplexity() const;  ///< exp of the nats a byte; likewise for words
  double word_perplexity() const;
  double tokens_per_s() const;
};

}  // namespace infer
