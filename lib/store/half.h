#pragma once
// Converts IEEE half precision, the format of a store's keys on disk.

#include <cstdint>
#include <span>

namespace store {

/// A Half holds the bits of a float16.
using Half = std::uint16_t;

constexpr float kMostHalf = 65'504;  ///< the largest finite value

/// Converts out.size() values exactly.
void to_float(const Half* in, std::span<float> out);
/// Converts out.size() values to the nearest float16, ties to even; values beyond 65,504 become
/// infinite.
void to_half(const float* in, std::span<Half> out);

}  // namespace store
