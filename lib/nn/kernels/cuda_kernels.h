#pragma once
// Table of functions through which a program calls the kernels of libtessera_cuda.so. Programs load
// that library at run time and do not link it.

#include "nn/kernels/delta_scan_kernels.h"
#include "nn/kernels/gated_keys_kernels.h"
#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/memory_kernels.h"
#include "nn/kernels/optimiser_kernels.h"
#include "nn/kernels/row_softmax_kernels.h"
#include "nn/kernels/sru_scan_kernels.h"

namespace nn {

/// Functions that record and replay the work of a device (CUDA graphs). They throw if CUDA refuses.
/// At each replay random numbers continue from the seed and offset of LibTorch's generator of the
/// device, so the masks equal those of the same operators run without a graph. The generator must
/// not be seeded during a recording.
struct GraphCalls {
  void* (*begin)(int device);   ///< starts recording; recorded work is not run
  void (*end)(void* graph);     ///< ends the recording
  void (*replay)(void* graph);  ///< runs in LibTorch's current stream
  void (*free)(void* graph);    ///< may be called before end()
};

/// By default, the table of a program that links the kernels: it has no build and no functions that
/// need a GPU.
struct CudaKernels {
  const char* build = nullptr;  ///< version and revision, which must equal the program's
  /// LibTorch's current stream of the device, a cudaStream_t.
  void* (*stream)(int device) = nullptr;
  std::int64_t (*memory)(int device) = nullptr;  ///< memory of the device in bytes, 0 if unknown
  GraphCalls graphs = {};                        ///< null if graphs cannot be recorded
  decltype(&delta_forward_cuda) delta_forward = delta_forward_cuda;
  decltype(&delta_backward_cuda) delta_backward = delta_backward_cuda;
  decltype(&gated_keys_forward_cuda) gated_keys_forward = gated_keys_forward_cuda;
  decltype(&gated_keys_backward_cuda) gated_keys_backward = gated_keys_backward_cuda;
  decltype(&leaky_keys_forward_cuda) leaky_keys_forward = leaky_keys_forward_cuda;
  decltype(&leaky_keys_backward_cuda) leaky_keys_backward = leaky_keys_backward_cuda;
  decltype(&adam_cuda) adam = adam_cuda;
  decltype(&nag_cuda) nag = nag_cuda;
  decltype(&row_softmax_cuda) row_softmax = row_softmax_cuda;
  decltype(&seen_tiles_cuda) seen_tiles = seen_tiles_cuda;
  decltype(&seen_raise_cuda) seen_raise = seen_raise_cuda;
  decltype(&seen_exponentiate_cuda) seen_exponentiate = seen_exponentiate_cuda;
  decltype(&seen_differentiate_cuda) seen_differentiate = seen_differentiate_cuda;
  decltype(&sru_forward_cuda) sru_forward = sru_forward_cuda;
  decltype(&sru_backward_cuda) sru_backward = sru_backward_cuda;
  /// Peak memory of tensors on the device in bytes.
  std::int64_t (*peak_memory)(int device) = nullptr;
  const char* (*error_text)(int error) = nullptr;  ///< text of a cudaError_t
};

}  // namespace nn

/// Exported by libtessera_cuda.so. Returns its table.
extern "C" [[gnu::visibility("default")]] const nn::CudaKernels* tessera_cuda_kernels();
