#pragma once
// The induction task: ... A B ... A -> B. Which letter follows A is settled anew in every sequence,
// so that it can be learned from the sequence alone (after footnote 5 of Zhang et al. 2024, "Memory
// Mosaics").

#include <cstdint>
#include <vector>

#include "core/rng.h"

namespace task {

struct InductionShape {
  std::int64_t symbols = 32;  ///< types of tokens
  std::int64_t pairs = 4;     ///< of first and second symbols, all different
  std::int64_t gap = 2;       ///< most symbols of noise behind a pair
  std::int64_t length = 64;   ///< tokens of a sequence
};

/// Pairs in random order, each followed by 0 to `gap` symbols that are in no pair. The last two
/// tokens are a pair that stood in the sequence before: its second symbol is the answer. No
/// position says what a token is. Needs symbols > 2 pairs, pairs >= 1, length >= 4.
std::vector<std::uint32_t> induction_sequence(const InductionShape& shape, core::Rng& rng);

}  // namespace task
