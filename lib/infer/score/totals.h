#pragma once
// Totals of a scored text and the results computed from them.

#include <cmath>
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

  /// Results are NaN if the divisor is 0: without tokens, or if the data lack the counts.
  double loss() const { return per(nats, static_cast<double>(tokens)); }  ///< nats a token
  double perplexity() const { return std::exp(loss()); }
  double bits_per_token() const { return loss() / std::log(2.0); }
  double bits_per_byte() const { return per(nats / std::log(2.0), bytes); }
  double bits_per_word() const { return per(nats / std::log(2.0), words); }
  double byte_perplexity() const { return std::exp(per(nats, bytes)); }  ///< exp of the nats a byte
  double word_perplexity() const { return std::exp(per(nats, words)); }
  double tokens_per_s() const { return per(static_cast<double>(tokens), seconds); }

 private:
  static double per(double sum, double count) { return count > 0 ? sum / count : NAN; }
};

}  // namespace infer
