// libtessera_cuda.so: the kernels of nn/kernels/*.cu, and what is known of a GPU there alone. The
// only file that sees CUDA's headers and LibTorch's; no part of lib/nn (cmake/Cuda.cmake).

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <memory>
#include <mutex>
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

// The generator's state in another place: where a recording fails, that of some LibTorches goes on
// taking what is drawn for a part of it.
void renew_generator(c10::DeviceIndex device) {
  at::Generator own = at::cuda::detail::getDefaultCUDAGenerator(device),
                fresh = at::cuda::detail::createCUDAGenerator(device);
  const std::lock_guard lock(own.mutex());
  fresh.set_current_seed(own.current_seed());
  fresh.set_offset(own.get_offset());
  own.graphsafe_set_state(fresh);
}

// Of what is started in a stream of its own, since the default one cannot be recorded. Other
// threads go on with theirs: a copy of the next batch, say. What is drawn is recorded by LibTorch,
// with the device's generator: its seed and offset are read anew by each replay.
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
    if (!open_) return;
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {  // it failed before: nothing is to be kept of it
    }
    try {
      renew_generator(inside_->current_device().index());
    } catch (const c10::Error&) {  // nor can it be used again
    }
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void end() {
    graph_.capture_end();
    open_ = false;
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
