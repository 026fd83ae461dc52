#pragma once
// The table by which a program reaches the kernels of libtessera_cuda.so, which it does not link.

#include <cstdint>

#include "nn/kernels/delta_scan_kernels.h"
#include "nn/kernels/gated_keys_kernels.h"
#include "nn/kernels/leaky_kernels.h"
#include "nn/kernels/memory_kernels.h"
#include "nn/kernels/optimiser_kernels.h"
#include "nn/kernels/row_softmax_kernels.h"
#include "nn/kernels/sru_scan_kernels.h"

namespace nn {

/// Recordings of what is started on a device (CUDA graphs). They throw where CUDA refuses. What is
/// drawn goes on from the seed and offset that LibTorch's generator of the device has at each
/// replay: masks are those that the same operators would draw then. It is not to be seeded while it
/// is recorded.
struct GraphCalls {
  void* (*begin)(int device);   ///< from here on it is recorded and not done
  void (*end)(void* graph);     ///< up to here
  void (*replay)(void* graph);  ///< in LibTorch's current stream
  void (*free)(void* graph);    ///< before end() too
};

struct CudaKernels {
  const char* build;                   ///< version and revision; the program's own
  void* (*stream)(int device);         ///< LibTorch's current stream there, a cudaStream_t
  std::int64_t (*memory)(int device);  ///< bytes that it has, 0 if that is not known
  GraphCalls graphs;                   ///< null where nothing can be recorded
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
  std::int64_t (*peak_memory)(int device);  ///< the most bytes that tensors had there at once
  const char* (*error_text)(int error);     ///< of a cudaError_t
};

/// The table of whoever links the kernels, without a build and what only a GPU has.
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

/// What libtessera_cuda.so exports.
extern "C" [[gnu::visibility("default")]] const nn::CudaKernels* tessera_cuda_kernels();
