#include "nn/leaky_cuda.h"

#include <cuda_runtime.h>

#include "nn/leaky_kernels.h"

namespace nn {
namespace {

constexpr int kThreads = 128, kWarp = 32;

__device__ float warp_sum(float x) {
  for (int lane = kWarp / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

// One channel of one row, the steps in turn: neighbours in a warp read neighbours in memory.
__global__ void add_up(LeakyDevice s, float* sums) {
  const std::int64_t d = s.heads * s.width, b = blockIdx.y,
                     i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= d) return;
  const float keep = s.decay[i / s.width];
  float sum = s.before == nullptr ? 0.0f : s.before[b * d + i];
  for (std::int64_t t = 0; t < s.steps; ++t) {
    sum = keep * sum + s.x[b * s.x_row + t * s.x_step + i];
    sums[(b * s.steps + t) * d + i] = sum;
  }
}

// A warp a head of a step: in place, sums become keys.
__global__ void normalise(LeakyDevice s, float* keys, float* norms) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  float* const key = keys + item * s.width;
  float square = 0;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) square += key[c] * key[c];
  const float norm = sqrtf(warp_sum(square) + static_cast<float>(kNormFloor));
  const float factor = s.scale[item % s.heads] / norm;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) key[c] *= factor;
  if (threadIdx.x % kWarp == 0) norms[item] = norm;
}

// A warp a head of a step: what keys and sums give the step's own sum goes to dx.
__global__ void through_norm(LeakyDevice s, const float* keys, const float* norms,
                             LeakyDeviceGradients g) {
  const std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (item >= s.rows * s.steps * s.heads) return;
  const std::int64_t at = item * s.width;
  const float inverse = 1.0f / s.scale[item % s.heads], factor = 1.0f / (inverse * norms[item]);
  float along = 0;
  if (g.d_keys != nullptr)
    for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp)
      along += keys[at + c] * g.d_keys[at + c];
  along = warp_sum(along);
  const float back = along * inverse * inverse;
  for (std::int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp) {
    float d_sum = g.d_sums == nullptr ? 0.0f : g.d_sums[at + c];
    if (g.d_keys != nullptr) d_sum += factor * (g.d_keys[at + c] - back * keys[at + c]);
    g.dx[at + c] = d_sum;
  }
  if (threadIdx.x % kWarp == 0) g.d_scale[item] = along * inverse;
}

// One channel of one row, from the last step to the first: dx of a step goes on to those before.
__global__ void back_in_time(LeakyDevice s, const float* keys, const float* norms,
                             LeakyDeviceGradients g) {
  const std::int64_t d = s.heads * s.width, b = blockIdx.y,
                     i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= d) return;
  const std::int64_t head = i / s.width;
  const float keep = s.decay[head], inverse = 1.0f / s.scale[head];
  float carried = 0, d_decay = 0;
  for (std::int64_t t = s.steps - 1; t >= 0; --t) {
    const std::int64_t step = b * s.steps + t, at = step * d + i;
    const float d_sum = carried + g.dx[at];
    float sum = s.before == nullptr ? 0.0f : s.before[b * d + i];  // of the step before
    if (t > 0) sum = keys[at - d] * norms[(step - 1) * s.heads + head] * inverse;
    d_decay += d_sum * sum;
    g.dx[at] = d_sum;
    carried = keep * d_sum;
  }
  g.d_decay[b * d + i] = d_decay;
  if (g.d_before != nullptr) g.d_before[b * d + i] = carried;
}

dim3 channels(const LeakyDevice& s) {
  return dim3(static_cast<unsigned>((s.heads * s.width + kThreads - 1) / kThreads),
              static_cast<unsigned>(s.rows));
}

unsigned warps(const LeakyDevice& s) {
  constexpr std::int64_t kWarps = kThreads / kWarp;
  return static_cast<unsigned>((s.rows * s.steps * s.heads + kWarps - 1) / kWarps);
}

}  // namespace

int leaky_keys_forward_cuda(const LeakyDevice& leaky, float* keys, float* norms, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  add_up<<<channels(leaky), kThreads, 0, queue>>>(leaky, keys);
  normalise<<<warps(leaky), kThreads, 0, queue>>>(leaky, keys, norms);
  return cudaGetLastError();
}

int leaky_keys_backward_cuda(const LeakyDevice& leaky, const float* keys, const float* norms,
                             const LeakyDeviceGradients& gradients, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  through_norm<<<warps(leaky), kThreads, 0, queue>>>(leaky, keys, norms, gradients);
  back_in_time<<<channels(leaky), kThreads, 0, queue>>>(leaky, keys, norms, gradients);
  return cudaGetLastError();
}

}  // namespace nn
