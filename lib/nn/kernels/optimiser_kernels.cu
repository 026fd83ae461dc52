#include "nn/kernels/optimiser_kernels.h"

#include "nn/kernels/launch.h"

namespace nn {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

__global__ void adam(AdamSpan c) {
  const float scale = *c.scale;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.n; i += stride) {
    const float gi = c.g[i] * scale;
    const float mi = c.b1 * c.m[i] + c.rest1 * gi, vi = c.b2 * c.v[i] + c.rest2 * (gi * gi);
    c.m[i] = mi;
    c.v[i] = vi;
    c.w[i] = c.keep * c.w[i] - c.step * mi / (c.root * sqrtf(vi) + c.epsilon);
  }
}

__global__ void nag(NagSpan c) {
  const float scale = *c.scale;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.n; i += stride) {
    const float gi = c.g[i] * scale, ui = c.u[i];
    c.w[i] = c.keep * c.w[i] + c.pull * ui - c.push * gi;
    c.u[i] = c.fade * ui - c.lr * gi;
  }
}

dim3 blocks(std::int64_t n) {
  const std::int64_t all = (n + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(all < kMostBlocks ? all : kMostBlocks));
}

}  // namespace

int adam_cuda(const AdamSpan& span, void* stream) {
  return launch(adam, blocks(span.n), kThreads, stream, span);
}

int nag_cuda(const NagSpan& span, void* stream) {
  return launch(nag, blocks(span.n), kThreads, stream, span);
}

}  // namespace nn
