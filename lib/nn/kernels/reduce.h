#pragma once
// Sums and maxima over the threads of a warp or a block, in .cu files. In a fixed order: the same
// bits each time, in every thread.

#include <cuda_runtime.h>

namespace nn {

constexpr int kWarp = 32;

__device__ inline float warp_sum(float x) {
  for (int lane = kWarp / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

__device__ inline float warp_max(float x) {
  for (int lane = kWarp / 2; lane > 0; lane /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}

/// For blocks of whole warps, which all call it. `parts` is shared: a float a warp.
__device__ inline float block_sum(float x, float* parts) {
  x = warp_sum(x);
  __syncthreads();  // whoever still reads parts of a call before
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  float sum = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) sum += parts[warp];
  return sum;
}

__device__ inline float block_max(float x, float* parts) {
  x = warp_max(x);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  float most = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) most = fmaxf(most, parts[warp]);
  return most;
}

}  // namespace nn
