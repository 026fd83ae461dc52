// libtessera_cuda.so: the kernels of nn/kernels/*.cu, and the stream that LibTorch computes in. The
// only file that sees CUDA's headers and LibTorch's; no part of lib/nn (cmake/Cuda.cmake).

#include <c10/cuda/CUDAStream.h>

#include "nn/kernels/cuda_kernels.h"

namespace {

void* stream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

nn::CudaKernels table() {
  nn::CudaKernels kernels = nn::linked_cuda_kernels();
  kernels.build = TESSERA_VERSION;
  kernels.stream = stream;
  return kernels;
}

}  // namespace

const nn::CudaKernels* tessera_cuda_kernels() {
  static const nn::CudaKernels kernels = table();
  return &kernels;
}
