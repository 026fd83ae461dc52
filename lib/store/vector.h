#pragma once
// The few vector instructions that exact search needs, for AVX-512, AVX2 and any other processor.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__) || defined(__F16C__)
#include <immintrin.h>
#endif

namespace store::vec {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__) && defined(__F16C__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

/// kLanes floats; + - * are element by element.
using Floats = float __attribute__((vector_size(kLanes * 4)));
/// The same at any address.
using Unaligned = float __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Floats load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void store(float* to, Floats value) { *reinterpret_cast<Unaligned*>(to) = value; }
inline Floats all(float value) { return value - Floats{}; }

/// kLanes float16 as floats. Only where the processor converts (F16C).
inline Floats widen(const std::uint16_t* from) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return Floats(_mm512_maskz_cvtph_ps(0xffff, halves));  // unmasked, gcc 12 warns of its own header
#elif defined(__AVX2__) && defined(__F16C__)
  return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  (void)from;
  return Floats{};
#endif
}

/// Bit i is set where a's lane i is above b's.
inline std::uint32_t above(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_GT_OQ);
#elif defined(__AVX2__)
  return static_cast<std::uint32_t>(
      _mm256_movemask_ps(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_GT_OQ)));
#else
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<std::uint32_t>(a[i] > b[i]) << i;
  return bits;
#endif
}

}  // namespace store::vec
