#pragma once
// Transposes a square of numbers in vector registers.

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

/// Writes column i of a square to `to + i * stride`; a Vector has n Numbers. Changes `lines`.
template <class Vector, int n, class Number>
[[gnu::always_inline]] inline void transpose(Vector (&lines)[n], Number* to, std::int64_t stride) {
  static_assert(sizeof(Vector) == n * sizeof(Number));
  square::turn<n / 2>(lines);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(to + i * stride, &lines[i], sizeof lines[i]);
}

}  // namespace nn::vec
