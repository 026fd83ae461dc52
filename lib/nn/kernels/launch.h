#pragma once
// Launches the kernels of a .cu file in plain C++. A compiler without CUDA can therefore build the
// file with the cuda_runtime.h of tests/cuda/emulated, which runs kernels on the CPU.

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

}  // namespace nn
