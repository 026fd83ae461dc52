#pragma once
// Functions that a compiler vectorises in loops over floats. Files that include this header are
// compiled with -fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math
// (cmake/Rooms.cmake, *_kernels.cpp).

#include <bit>
#include <cstdint>
#include <cstring>

namespace nn::vec {

/// A float vector that the compiler keeps in one or several vector registers, as wide as the widest
/// register.
using Floats16 = float __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
#ifdef __AVX512F__
using Floats = Floats16;
#else
using Floats = Floats8;
#endif
inline constexpr int kFloats = sizeof(Floats) / sizeof(float);

/// The vector, or another value, at any address. (Clang forgets a smaller alignment in templates.)
template <class Vector = Floats> Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(float* to, const Floats& v) { std::memcpy(to, &v, sizeof v); }

/// e^x to 2 units in the last place. Inputs below -87 give about 1e-38, inputs above 88 about 1e38.
inline float exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float n = __builtin_rintf(x * 1.44269504088896341f);
  float r = x - n * 0.693145751953125f;
  r = r - n * 1.428606765330187e-06f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t exponent = (static_cast<std::int32_t>(n) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

/// tanh computed from exp.
inline float tanh(float x) { return 1.0f - 2.0f / (exp(2.0f * x) + 1.0f); }

inline constexpr float kGeluA = 0.7978845608028654f;  // sqrt(2 / pi)
inline constexpr float kGeluB = 0.044715f;

/// SiLU, and the tanh approximation of GELU (Hendrycks & Gimpel 2016).
inline float silu(float x) { return x / (1.0f + exp(-x)); }
inline float gelu(float x) { return 0.5f * x * (1.0f + tanh(kGeluA * (x + kGeluB * x * x * x))); }

}  // namespace nn::vec
