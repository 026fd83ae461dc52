#pragma once
// The optimisers' loops over n floats: one pass each, vector code (built as vector_math.h of lib/nn
// says).

#include <cstdint>

namespace train {

/// m = b1 m + rest1 g, v = b2 v + rest2 g^2, w = keep w - step m / (root sqrt(v) + epsilon), with g
/// times scale.
struct AdamNumbers {
  float scale, keep, b1, b2, rest1, rest2, step, root, epsilon;
};
void adam_span(float* w, const float* g, float* m, float* v, std::int64_t n,
               const AdamNumbers& numbers);

/// w = keep w + pull u - push g, u = fade u - lr g, with g times scale.
struct NagNumbers {
  float scale, keep, pull, push, fade, lr;
};
void nag_span(float* w, const float* g, float* u, std::int64_t n, const NagNumbers& numbers);

double square_sum(const float* x, std::int64_t n);

}  // namespace train
