#pragma once
// The optimisers' loops over n floats, each in one pass.

#include <cstdint>

namespace nn {

/// m = b1 m + rest1 g, v = b2 v + rest2 g^2, w = keep w - step m / (root sqrt(v) + epsilon), where
/// g is the gradient times *scale.
struct AdamSpan {
  float *w, *m, *v;
  const float *g, *scale;
  std::int64_t n;
  float keep, b1, b2, rest1, rest2, step, root, epsilon;
};
/// Updates elements [begin, end).
void adam_cpu(const AdamSpan& span, std::int64_t begin, std::int64_t end);
/// Updates all elements of `count` spans, many in one launch. `spans` is in host memory and may
/// change afterwards; all pointers in it are device pointers, `scale` too. `stream` is a
/// cudaStream_t. Returns a cudaError_t, 0 if the launches succeed.
int adam_cuda(const AdamSpan* spans, std::int64_t count, void* stream);

/// w = keep w + pull u - push g, u = fade u - lr g, where g is the gradient times *scale.
struct NagSpan {
  float *w, *u;
  const float *g, *scale;
  std::int64_t n;
  float keep, pull, push, fade, lr;
};
void nag_cpu(const NagSpan& span, std::int64_t begin, std::int64_t end);
int nag_cuda(const NagSpan* spans, std::int64_t count, void* stream);

double square_sum(const float* x, std::int64_t n);

}  // namespace nn
