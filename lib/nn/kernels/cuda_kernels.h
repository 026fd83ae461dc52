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

struct CudaKernels {
  const char* build;                   ///< version and revision, which must equal the program's
  void* (*stream)(int device);         ///< LibTorch's current stream of the device, a cudaStream_t
  std::int64_t (*memory)(int device);  ///< memory of the device in bytes, 0 if unknown
  GraphCalls graphs;                   ///< null if graphs cannot be recorded
  decltype(&delta_forward_cuda) delta_forward;
  decltype(&delta_backward_cuda) delta_backward;
  decltype(&gated_keys_forward_cuda) gated_keys_forward;
  decltype(&gated_keys_backward_cuda) gated_keys_backward;
  decltype(&leaky_keys_forward_cuda) leaky_keys_forward;
  decltype(&leaky_keys_backward_cuda) leaky_keys_backward;
  decltype(&adam_cuda) adam;
  decltype(&nag_cuda) nag;
  decltype(&row_softmax_cuda) row_softmax;
  decltype(&seen_tiles_cuda) seen_tiles;
  decltype(&seen_raise_cuda) seen_raise;
  decltype(&seen_exponentiate_cuda) seen_exponentiate;
  decltype(&seen_differentiate_cuda) seen_differentiate;
  decltype(&sru_forward_cuda) sru_forward;
  decltype(&sru_backward_cuda) sru_backward;
  std::int64_t (*peak_memory)(int device);  ///< peak memory of tensors on the device in bytes
  const char* (*error_text)(int error);     ///< text of a cudaError_t
};

/// Returns the table for a program that links the kernels. It has no build and no functions that
/// need a GPU.
inline CudaKernels linked_cuda_kernels() {
  return {.build = nullptr,
      .stream = nullptr,
      .memory = nullptr,
      .graphs = {},
      .delta_forward = delta_forward_cuda,
      .delta_backward = delta_backward_cuda,
      .gated_keys_forward = gated_keys_forward_cuda,
      .gated_keys_backward = gated_keys_backward_cuda,
      .leaky_keys_forward = leaky_keys_forward_cuda,
      .leaky_keys_backward = leaky_keys_backward_cuda,
      .adam = adam_cuda,
      .nag = nag_cuda,
      .row_softmax = row_softmax_cuda,
      .seen_tiles = seen_tiles_cuda,
      .seen_raise = seen_raise_cuda,
      .seen_exponentiate = seen_exponentiate_cuda,
      .seen_differentiate = seen_differentiate_cuda,
      .sru_forward = sru_forward_cuda,
      .sru_backward = sru_backward_cuda,
      .peak_memory = nullptr,
      .error_text = nullptr};
}

}  // namespace nn

/// Exported by libtessera_cuda.so. Returns its table.
extern "C" [[gnu::visibility("default")]] const nn::CudaKernels* tessera_cuda_kernels();
