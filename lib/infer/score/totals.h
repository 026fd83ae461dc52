#pragma once
// What was scored, and the figures that follow from it.

#include <cstdint>
#include <optional>

#include "infer/sources/source.h"

namespace infer {

/// What gates did.
struct GateTotals {
  double constant_nats = 0;  ///< of the same mixture at the best constant shares
  std::uint64_t worse = 0;   ///< tokens that are less probable than with those
  bool compared = false;     ///< both are known: no search was left out
};

/// Sums over scored tokens. Bytes and words are those of the source text: a document counts with
/// the share of its tokens that was scored (all but the first of a stream, which nothing predicts),
/// and where a protocol counts a window for less, all of it does.
struct Totals {
  double nats = 0;  ///< sum of -log p
  std::uint64_t tokens = 0;
  double bytes = 0, words = 0;
  double seconds = 0;
  std::optional<SearchCounts> searches = {};  ///< where they may be left out
  std::optional<GateTotals> gates = {};       ///< where shares have gates

  double loss() const;        ///< nats a token; NaN if there are no tokens
  double perplexity() const;  ///< exp(loss)
  double bits_per_token() const;
  double bits_per_byte() const;  ///< NaN if the data do not say their bytes; the same for words
  double bits_per_word() const;
  double byte_perplexity() const;  ///< exp of the nats a byte; the same for words
  double word_perplexity() const;
  double tokens_per_s() const;
};

}  // namespace infer
