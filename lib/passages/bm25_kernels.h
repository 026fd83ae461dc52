#pragma once
// The two inner loops of the search: sums of impacts, sparse and dense.

#include <cstddef>
#include <cstdint>
#include <span>

namespace passages {

/// Units are looked at so many at a time, whose scores lie in registers.
constexpr std::size_t kTile = 64;

struct DenseTerm {
  std::uint32_t row;
  float weight;
};

/// scores[units[i]] += weight * impacts[i]; each unit stands there once.
void add_postings(const std::uint16_t* units, const float* impacts, std::size_t n, float weight,
                  float* scores);

/// scores[j] += sum over terms of weight * rows[row * kTile + j], j < kTile; the highest of them.
/// rows and scores at multiples of 64 bytes.
float add_rows(const float* rows, std::span<const DenseTerm> terms, float* scores);

/// Which of kTile scores are `least` or more: their places, ascending. Returns how many.
std::size_t places_from(const float* scores, float least, std::uint8_t* places);

}  // namespace passages
