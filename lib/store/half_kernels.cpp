#include "store/vector.h"

namespace store {
namespace {

// Converts one value by bit shifts, for processors without F16C and for the remainder of a vector.
float widen(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(half & 0x7fffU) << 13;
  const std::uint32_t exponent = rest >> 23;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x7fffffU));
  if (exponent > 0) return std::bit_cast<float>(sign | (rest + (112U << 23)));
  const float small = static_cast<float>(half & 0x3ffU) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

Half narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t size = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (size > 0x7f800000U) {
    half = 0x7e00U | ((size >> 13) & 0x3ffU);  // NaN
  } else if (size >= 0x477ff000U) {
    half = 0x7c00U;  // rounds to 65,536 or more
  } else if (size < 0x38800000U) {
    // Below 2^-14: adding 1/2 leaves multiples of 2^-24, rounded by the addition.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  } else {
    half = (size - (112U << 23) + 0xfffU + ((size >> 13) & 1U)) >> 13;
  }
  return static_cast<Half>(sign | half);
}

}  // namespace

void to_float(const Half* in, std::span<float> out) {
  std::size_t i = 0;
#if defined(__F16C__)
  for (; i + vec::kLanes <= out.size(); i += vec::kLanes) vec::store(&out[i], vec::widen(in + i));
#endif
  for (; i < out.size(); ++i) out[i] = widen(in[i]);
}

void to_half(const float* in, std::span<Half> out) {
  std::size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= out.size(); i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&out[i]),
        _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < out.size(); ++i) out[i] = narrow(in[i]);
}

}  // namespace store
