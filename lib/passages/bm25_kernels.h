#pragma once
// The two inner loops of the search: sums of impacts, sparse and dense.

#include <cstddef>
#include <cstdint>
#include <span>

namespace passages {

/// Number of units that are processed together; their scores fit in registers.
constexpr std::size_t kTile = 64;

/// A DenseTerm is the row of a frequent term and its weight.
struct DenseTerm {
  std::uint32_t row;
  float weight;
};

/// Adds weight * impacts[i] to scores[units[i]]; each unit occurs once.
void add_postings(
    const std::uint16_t* units, const float* impacts, std::size_t n, float weight, float* scores);

/// Adds the sum over terms of weight * rows[row * kTile + j] to scores[j] for j < kTile, and
/// returns the highest score. rows and scores are aligned to 64 bytes.
float add_rows(const float* rows, std::span<const DenseTerm> terms, float* scores);

/// Finds the scores of kTile that are at least `least`. Writes their indices to `places`,
/// ascending, and returns their number.
std::size_t places_from(const float* scores, float least, std::uint8_t* places);

}  // namespace passages
