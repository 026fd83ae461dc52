#pragma once
// Measures the deviation between two engines.

#include <cstdint>
#include <vector>

#include "infer/decode/decode_engine.h"

namespace infer {

/// Deviation of the log-probabilities of every token after each prefix of a text, nats.
struct DecodeError {
  double rms = 0, max = 0;  ///< of the difference
  double divergence = 0;    ///< mean Kullback-Leibler divergence of `other` from `reference`
  double same_best = 0;     ///< fraction of positions with equal best tokens
};

/// Feeds both engines the tokens one by one, as in decoding, and compares them. Overwrites the
/// engines' rows.
DecodeError compare(Engine& reference, Engine& other, const std::vector<std::int64_t>& tokens);

}  // namespace infer
