#pragma once
// Formats results, and the signature that identifies what they depend on.
// Totals of a scored text and the results computed from them.

#include "infer/sources/memory_plan.h"

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

/// Returns the first 12 hexadecimal digits.
std::string short_fingerprint(const core::Digest& digest);

/// Returns one string with all settings that affect a result (after sacreBLEU):
///   data:…|model:…|protocol:hf|window:512|stride:512|reset:none|carry:off|first:skipped|
///   retrieve:…:100:0.9:0.4|retrieve-query:32|retrieve-tokens:256|memory:local+long|
///   long:2048|combine:joint|temperature:1.1|cache:2000|theta:0.06|cache-lambda:0.1|
///   stores:…+…|k:1024|nprobe:32|rescore:no|stores-combine:both|stores-temperature:10|
///   stores-lambda:0.3|ensemble:...@512/256|ensemble-lambda:0.5|precision:float32|version:0.1.0
/// Omits unused settings. For pairs, unit:pair replaces the windows.
std::string signature(const core::Digest& data, const core::Digest& model,
    const WindowPlan& windows, const MemoryPlan& memory, const std::string& precision);

/// Returns a number for a report; null if it is not finite.
core::OrderedJson figure(double value);
/// Returns loss, perplexity, bits_per_token, bits_per_byte, bits_per_word, byte_perplexity,
/// word_perplexity, tokens, bytes, words; null if the data lack the numbers. Reproducible from run
/// to run.
core::OrderedJson figures(const Totals& totals);
/// Returns the results that depend on the clock: seconds, tokens_per_s.
core::OrderedJson timings(const Totals& totals);

}  // namespace infer
