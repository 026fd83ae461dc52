// libtessera_cuda.so: the kernels of nn/kernels/*.cu, and what is known of a GPU there alone. The
// only file that sees CUDA's headers and LibTorch's; no part of lib/nn (cmake/Cuda.cmake).

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <memory>
#include <optional>

#include "nn/kernels/cuda_kernels.h"

namespace {

c10::cuda::CUDAStream current(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device));
}

void* stream(int device) { return current(device).stream(); }

std::int64_t memory(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess
             ? static_cast<std::int64_t>(properties.totalGlobalMem)
             : 0;
}

// Of what is started in a stream of its own, since the default one cannot be recorded. Other threads
// go on with theirs: a copy of the next batch, say.
class Graph {
 public:
  explicit Graph(int device) {
    const auto before = current(device);
    const auto own = c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device));
    at::cuda::CUDAEvent started;
    started.record(before);
    started.block(own);
    inside_.emplace(own);
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    open_ = true;
  }
  ~Graph() {
    try {
      if (open_) graph_.capture_end();
    } catch (const c10::Error&) {  // it failed before: nothing is to be kept of it
    }
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void end() {
    open_ = false;
    graph_.capture_end();
    inside_.reset();
  }
  void replay() { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
  std::optional<c10::cuda::CUDAStreamGuard> inside_;
  bool open_ = false;
};

void* begin_graph(int device) { return std::make_unique<Graph>(device).release(); }
void end_graph(void* graph) { static_cast<Graph*>(graph)->end(); }
void replay_graph(void* graph) { static_cast<Graph*>(graph)->replay(); }
void free_graph(void* graph) { delete static_cast<Graph*>(graph); }

nn::CudaKernels table() {
  nn::CudaKernels kernels = nn::linked_cuda_kernels();
  kernels.build = TESSERA_VERSION;
  kernels.stream = stream;
  kernels.memory = memory;
  kernels.graphs = {begin_graph, end_graph, replay_graph, free_graph};
  return kernels;
}

}  // namespace

const nn::CudaKernels* tessera_cuda_kernels() {
  static const nn::CudaKernels kernels = table();
  return &kernels;
}
