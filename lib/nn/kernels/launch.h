#pragma once
// Launches the kernels of a .cu file in plain C++. A compiler without CUDA can therefore build the
// file with the cuda_runtime.h of tests/cuda/emulated, which runs kernels on the CPU.
// Sums and maxima over the threads of a warp or a block, for .cu files. The order of additions is
// fixed: the result bits are reproducible and equal in all threads.

#include <cuda_runtime.h>

namespace nn {

/// Runs kernel<<<grid, threads, 0, stream>>>(arguments...) and returns a cudaError_t. A grid
/// without blocks is no error and does nothing. The function clears the runtime's last error, so
/// that LibTorch's own checks do not report it again.
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
    const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = static_cast<cudaStream_t>(stream);
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

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
