#pragma once
// Generates the induction task: ... A B ... A -> B. The letter that follows A is drawn anew for
// every sequence, so it can only be learned from the sequence itself (after footnote 5 of Zhang et
// al. 2024, "Memory Mosaics").

#include "core/rng.h"

namespace task {

/// An InductionShape holds the sizes of a sequence.
struct InductionShape {
  std::int64_t symbols = 32;  ///< number of token types
  std::int64_t pairs = 4;     ///< number of pairs of first and second symbols, all different
  std::int64_t gap = 2;       ///< maximum number of noise symbols after a pair
  std::int64_t length = 64;   ///< tokens per sequence
};

/// Draws a sequence of pairs in random order, each followed by 0 to `gap` symbols that are in no
/// pair. The last two tokens are a pair that occurred earlier; its second symbol is the answer.
/// Positions carry no information about tokens. Requires symbols > 2 pairs, pairs >= 1, length >=
/// 4.
std::vector<std::uint32_t> induction_sequence(const InductionShape& shape, core::Rng& rng);

}  // namespace task
