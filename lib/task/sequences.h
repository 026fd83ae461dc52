#pragma once
// Generates the induction task: ... A B ... A -> B. The letter that follows A is drawn anew for
// every sequence, so it can only be learned from the sequence itself (after footnote 5 of Zhang et
// al. 2024, "Memory Mosaics").
// Generates the three moons (Zhang et al. 2024, section 3): moons that circle a planet, each with
// its own period, observed as points in the plane.

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

inline constexpr std::size_t kMoons = 3;
using Periods = std::array<double, kMoons>;  ///< time units

/// Returns the common period of all moons: the time after which their positions repeat.
double common_period(const Periods& periods);

/// Returns the triples of different periods from {0.5, 1, ..., 3.5} with the nine shortest common
/// periods, shortest first; ties are broken by the periods. The last triple is for validation, the
/// others for training.
std::vector<Periods> chosen_periods();

/// Returns `n` observations of (sin, cos) of each moon, starting with number `first`, `per_unit` of
/// them per time unit. All moons have the same phase in radians. Shape (n, 6), row-major.
std::vector<float> observe(
    const Periods& periods, double per_unit, double phase, std::int64_t first, std::int64_t n);

}  // namespace task
