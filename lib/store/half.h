#pragma once
// IEEE half precision, as the keys of a store lie on disk.

#include <cstdint>
#include <span>

namespace store {

/// A float16's bits.
using Half = std::uint16_t;

constexpr float kMostHalf = 65'504;  ///< the largest finite one

/// Exact. out.size() values.
void to_float(const Half* in, std::span<float> out);
/// To the nearest, ties to even; beyond 65,504 infinite. out.size() values.
void to_half(const float* in, std::span<Half> out);

}  // namespace store
