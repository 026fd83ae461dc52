#pragma once
// Sums and maxima over the threads of a warp or a block, for .cu files. The order of additions is
// fixed: the result bits are reproducible and equal in all threads.

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

/// Returns the sum over a block of whole warps. All threads must call it. `parts` is shared memory
/// with one float per warp.
__device__ inline float block_sum(float x, float* parts) {
  x = warp_sum(x);
  __syncthreads();  // threads may still read parts of the previous call
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
