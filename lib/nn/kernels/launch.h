#pragma once
// How a .cu file starts its kernels: in plain C++, so that a compiler without CUDA takes the file
// too, with a cuda_runtime.h that runs kernels on the CPU (tests/cuda/emulated).

#include <cuda_runtime.h>

namespace nn {

/// kernel<<<grid, threads, 0, stream>>>(arguments...); a cudaError_t. A grid without blocks is no
/// error: there is nothing to do. An error is told here alone: the runtime's last error, which
/// LibTorch's own launches look at, is none afterwards.
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
