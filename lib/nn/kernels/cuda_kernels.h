#pragma once
// The table by which a program reaches the kernels of libtessera_cuda.so, which it does not link.

#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/optimiser_kernels.h"
#include "nn/kernels/row_softmax_kernels.h"
#include "nn/kernels/sru_scan_kernels.h"

namespace nn {

struct CudaKernels {
  const char* build;            ///< version and revision; the program's own
  void* (*stream)(int device);  ///< LibTorch's current stream there, a cudaStream_t
  decltype(&leaky_keys_forward_cuda) leaky_keys_forward;
  decltype(&leaky_keys_backward_cuda) leaky_keys_backward;
  decltype(&adam_cuda) adam;
  decltype(&nag_cuda) nag;
  decltype(&row_softmax_cuda) row_softmax;
  decltype(&sru_forward_cuda) sru_forward;
  decltype(&sru_backward_cuda) sru_backward;
};

/// The table of whoever links the kernels, without a build and a stream.
inline CudaKernels linked_cuda_kernels() {
  return {nullptr,  nullptr,          leaky_keys_forward_cuda, leaky_keys_backward_cuda, adam_cuda,
          nag_cuda, row_softmax_cuda, sru_forward_cuda,        sru_backward_cuda};
}

}  // namespace nn

/// What libtessera_cuda.so exports.
extern "C" [[gnu::visibility("default")]] const nn::CudaKernels* tessera_cuda_kernels();
