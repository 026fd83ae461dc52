#pragma once
// Transposes a square of floats in vector registers.

#include <utility>

#include "nn/kernels/vector_math.h"

namespace nn::vec {
namespace square {

// Exchanges halves of two lines of a square that are kStep apart.
template <int kStep, class Vector, std::size_t... kAt>
[[gnu::always_inline]] inline void exchange(
    Vector& low, Vector& high, std::index_sequence<kAt...>) {
  constexpr std::size_t n = sizeof...(kAt);
  const Vector x = low, y = high;
  low = __builtin_shufflevector(x, y, ((kAt & kStep) ? n + kAt - kStep : kAt)...);
  high = __builtin_shufflevector(x, y, ((kAt & kStep) ? n + kAt : kAt + kStep)...);
}

template <int kStep, class Vector, int n>
[[gnu::always_inline]] inline void turn(Vector (&lines)[n]) {
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i)
    if ((i & kStep) == 0)
      exchange<kStep>(lines[i], lines[i + kStep], std::make_index_sequence<n>());
  if constexpr (kStep > 1) turn<kStep / 2>(lines);
}

}  // namespace square

/// Makes the columns of a square its lines; a Vector has n floats.
template <class Vector, int n> [[gnu::always_inline]] inline void transpose(Vector (&lines)[n]) {
  static_assert(sizeof(Vector) == n * sizeof(float));
  square::turn<n / 2>(lines);
}

}  // namespace nn::vec
