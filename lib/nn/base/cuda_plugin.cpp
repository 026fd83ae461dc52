// libtessera_cuda.so: the kernels of nn/kernels/*.cu, and what is known of a GPU there alone. The
// only file that sees CUDA's headers and LibTorch's; no part of lib/nn (cmake/Cuda.cmake).

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include "nn/kernels/cuda_kernels.h"

namespace {

void* stream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

std::int64_t memory(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess
             ? static_cast<std::int64_t>(properties.totalGlobalMem)
             : 0;
}

nn::CudaKernels table() {
  nn::CudaKernels kernels = nn::linked_cuda_kernels();
  kernels.build = TESSERA_VERSION;
  kernels.stream = stream;
  kernels.memory = memory;
  return kernels;
}

}  // namespace

const nn::CudaKernels* tessera_cuda_kernels() {
  static const nn::CudaKernels kernels = table();
  return &kernels;
}
