#pragma once
// Wraps the few vector instructions that exact search needs, for AVX-512, AVX2 and any other
// processor.

#include <bit>
#include <cstddef>
#include <cstring>

#include "store/half.h"

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

/// Floats is kLanes floats; + - * are elementwise. load() and store() take any address.
using Floats = float __attribute__((vector_size(kLanes * 4)));

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, Floats value) { std::memcpy(to, &value, sizeof value); }
inline Floats all(float value) { return value - Floats{}; }

/// Converts kLanes float16 to floats. Requires a processor with F16C.
inline Floats widen(const std::uint16_t* from) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return Floats(_mm512_maskz_cvtph_ps(0xffff, halves));  // unmasked, gcc 12 warns about its own
                                                         // header
#elif defined(__AVX2__) && defined(__F16C__)
  return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  (void)from;
  return Floats{};
#endif
}

/// Converts kTurned float16 of each of kLanes rows, transposed: to[j][i] is rows[i][j].
inline constexpr std::size_t kTurned = 8;
inline void widen_turned(const std::uint16_t* const (&rows)[kLanes], Floats (&to)[kTurned]) {
#if defined(__AVX2__) && defined(__F16C__)
  const auto row = [&](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i]));
  };
#if defined(__AVX512F__)
  // Rows i and i + 8 share a register, because unpacking works within 128 bits.
  __m256i x[8], y[8];
  for (int i = 0; i < 8; ++i)
    x[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(i)), row(i + 8), 1);
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = _mm256_unpacklo_epi16(x[i], x[i + 4]);
    y[2 * i + 1] = _mm256_unpackhi_epi16(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = _mm256_unpacklo_epi16(y[i], y[i + 4]);
    x[2 * i + 1] = _mm256_unpackhi_epi16(y[i], y[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = Floats(_mm512_maskz_cvtph_ps(0xffff, _mm256_unpacklo_epi16(x[i], x[i + 4])));
    to[2 * i + 1] = Floats(_mm512_maskz_cvtph_ps(0xffff, _mm256_unpackhi_epi16(x[i], x[i + 4])));
  }
#else
  __m128i x[8], y[8];
  for (int i = 0; i < 8; ++i) x[i] = row(i);
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = _mm_unpacklo_epi16(x[i], x[i + 4]);
    y[2 * i + 1] = _mm_unpackhi_epi16(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = _mm_unpacklo_epi16(y[i], y[i + 4]);
    x[2 * i + 1] = _mm_unpackhi_epi16(y[i], y[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = Floats(_mm256_cvtph_ps(_mm_unpacklo_epi16(x[i], x[i + 4])));
    to[2 * i + 1] = Floats(_mm256_cvtph_ps(_mm_unpackhi_epi16(x[i], x[i + 4])));
  }
#endif
#else
  for (int i = 0; i < kLanes; ++i) {
    float row[kTurned];
    to_float(rows[i], row);
    for (std::size_t j = 0; j < kTurned; ++j) to[j][i] = row[j];
  }
#endif
}

/// Returns a mask whose bit i is set if lane i of a is greater than that of b.
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
