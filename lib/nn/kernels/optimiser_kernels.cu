#include "nn/kernels/optimiser_kernels.h"

#include "nn/kernels/launch.h"

namespace nn {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;  // of a span

// The spans of a launch. Span i has the blocks [first[i], first[i + 1]).
constexpr std::int64_t kSpans = 48;
template <class Span> struct Spans {
  Span span[kSpans];
  unsigned first[kSpans + 1];
};
static_assert(sizeof(Spans<AdamSpan>) <= 4096 && sizeof(Spans<NagSpan>) <= 4096,
    "a kernel's arguments have 4 KB");

// Calls work(span, i, scale) for the elements i of this thread.
template <class Span, class Work>
__device__ void each_element(const Spans<Span>& all, const Work& work) {
  int at = 0;
  while (blockIdx.x >= all.first[at + 1]) ++at;
  const Span& span = all.span[at];
  const float scale = *span.scale;
  const unsigned block = blockIdx.x - all.first[at];
  const std::int64_t stride = std::int64_t{all.first[at + 1] - all.first[at]} * blockDim.x;
  for (std::int64_t i = std::int64_t{block} * blockDim.x + threadIdx.x; i < span.n; i += stride)
    work(span, i, scale);
}

__global__ void adam(Spans<AdamSpan> all) {
  each_element(all, [](const AdamSpan& c, std::int64_t i, float scale) {
    const float gi = c.g[i] * scale;
    const float mi = c.b1 * c.m[i] + c.rest1 * gi, vi = c.b2 * c.v[i] + c.rest2 * (gi * gi);
    c.m[i] = mi;
    c.v[i] = vi;
    c.w[i] = c.keep * c.w[i] - c.step * mi / (c.root * sqrtf(vi) + c.epsilon);
  });
}

__global__ void nag(Spans<NagSpan> all) {
  each_element(all, [](const NagSpan& c, std::int64_t i, float scale) {
    const float gi = c.g[i] * scale, ui = c.u[i];
    c.w[i] = c.keep * c.w[i] + c.pull * ui - c.push * gi;
    c.u[i] = c.fade * ui - c.lr * gi;
  });
}

template <class Span>
int launch_all(void (*kernel)(Spans<Span>), const Span* spans, std::int64_t count, void* stream) {
  for (std::int64_t begin = 0; begin < count; begin += kSpans) {
    Spans<Span> some{};
    for (std::int64_t i = 0; i < kSpans; ++i) {
      if (begin + i < count) some.span[i] = spans[begin + i];
      const std::int64_t blocks = (some.span[i].n + kThreads - 1) / kThreads;
      some.first[i + 1] =
          some.first[i] + static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
    }
    if (const int error = launch(kernel, dim3(some.first[kSpans]), kThreads, stream, some))
      return error;
  }
  return cudaSuccess;
}

}  // namespace

int adam_cuda(const AdamSpan* spans, std::int64_t count, void* stream) {
  return launch_all(adam, spans, count, stream);
}

int nag_cuda(const NagSpan* spans, std::int64_t count, void* stream) {
  return launch_all(nag, spans, count, stream);
}

}  // namespace nn
