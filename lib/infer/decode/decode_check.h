#pragma once
// How far one way to compute a model is from another.

#include <cstdint>
#include <vector>

#include "infer/decode/decode_engine.h"

namespace infer {

/// Of the log-probabilities of every word after every token of a text, nats.
struct DecodeError {
  double rms = 0, max = 0;  ///< of the difference
  double divergence = 0;    ///< mean Kullback-Leibler divergence of `other` from `reference`
  double same_best = 0;     ///< share of the places where both have the same best word
};

/// Both engines get the tokens one by one, as when decoding; their rows are given up.
DecodeError compare(Engine& reference, Engine& other, const std::vector<std::int64_t>& tokens);

}  // namespace infer
