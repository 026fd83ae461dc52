#pragma once
// Lanes: sixteen floats in registers, with a conversion from each type of weight. For kernels only.
// Intrinsics, because gcc 12's vector extensions convert int8 one by one.

#ifdef __AVX2__
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 warns about its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

#include <vector>

#include "nn/kernels/vector_math.h"

namespace infer {

#ifdef __AVX512F__
struct Lanes {
  __m512 v = _mm512_setzero_ps();
  static Lanes all(float x) { return {_mm512_set1_ps(x)}; }
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load(const std::uint16_t* p) {
    const __m512i wide =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static Lanes load(const std::int8_t* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  void add_product(const Lanes& a, const Lanes& b) { v = _mm512_fmadd_ps(a.v, b.v, v); }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
};
#elif defined(__AVX2__) && defined(__FMA__)
struct HalfLanes {
  __m256 v = _mm256_setzero_ps();
  static HalfLanes all(float x) { return {_mm256_set1_ps(x)}; }
  static HalfLanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static HalfLanes load(const std::uint16_t* p) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  static HalfLanes load(const std::int8_t* p) {
    return {_mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
  }
  void add_product(const HalfLanes& a, const HalfLanes& b) { v = _mm256_fmadd_ps(a.v, b.v, v); }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
};
struct Lanes {
  HalfLanes low, high;
  template <class Weight> static Lanes load(const Weight* p) {
    return {HalfLanes::load(p), HalfLanes::load(p + 8)};
  }
  void add_product(const Lanes& a, const Lanes& b) {
    low.add_product(a.low, b.low), high.add_product(a.high, b.high);
  }
  void store(float* p) const { low.store(p), high.store(p + 8); }
};
#define INFER_HALF_LANES
#else
struct Lanes {
  nn::vec::Floats16 v = {};
  static Lanes all(float x) { return {nn::vec::Floats16{} + x}; }
  static Lanes load(const float* p) { return {nn::vec::load<nn::vec::Floats16>(p)}; }
  static Lanes load(const std::uint16_t* p) {
    using Halves = std::uint16_t __attribute__((vector_size(32)));
    using Wide = std::uint32_t __attribute__((vector_size(64)));
    const Wide wide = __builtin_convertvector(nn::vec::load<Halves>(p), Wide) << 16;
    return {std::bit_cast<nn::vec::Floats16>(wide)};
  }
  static Lanes load(const std::int8_t* p) {
    using Bytes = std::int8_t __attribute__((vector_size(16)));
    using Wide = std::int32_t __attribute__((vector_size(64)));
    const Wide wide = __builtin_convertvector(nn::vec::load<Bytes>(p), Wide);
    return {__builtin_convertvector(wide, nn::vec::Floats16)};
  }
  void add_product(const Lanes& a, const Lanes& b) { v += a.v * b.v; }
  void store(float* p) const { std::memcpy(p, &v, sizeof v); }
};
#endif

inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);  // round to even
}

// A line of a cache.
struct alignas(64) Line {
  float at[16];
};
// Returns the data of `memory`, which it enlarges to `size` elements if necessary.
template <class T> inline T* at_least(std::vector<T>& memory, std::int64_t size) {
  if (std::ssize(memory) < size) memory.resize(static_cast<std::size_t>(size));
  return memory.data();
}

}  // namespace infer
