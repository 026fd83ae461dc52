// Source of libtessera_cuda.so: the kernels of nn/kernels/*.cu and the functions that need CUDA's
// API. This is the only file that includes both CUDA's and LibTorch's headers. It is not part of
// lib/nn (cmake/Cuda.cmake).

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <exception>
#include <mutex>

#include "core/base.h"
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

std::int64_t peak_memory(int device) {
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  constexpr auto kAll =
      static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);  // sum over all pools
  return stats.allocated_bytes[kAll].peak;
}

const char* error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

// Runs all parts and ignores exceptions: a part throws if it was already done or never begun.
template <class... F> void each_as_far_as_it_goes(const F&... parts) {
  const auto attempt = [](const auto& part) {
    try {
      part();
    } catch (const std::exception&) {}
  };
  (attempt(parts), ...);
}

// Replaces the generator's state object. Some LibTorch versions leave the old object in recording
// mode after a recording fails.
void renew_generator(c10::DeviceIndex device) {
  at::Generator own = at::cuda::detail::getDefaultCUDAGenerator(device),
                fresh = at::cuda::detail::createCUDAGenerator(device);
  const std::lock_guard lock(own.mutex());
  fresh.set_current_seed(own.current_seed());
  fresh.set_offset(own.get_offset());
  own.graphsafe_set_state(fresh);
}

// Calls for pools of pinned memory, which LibTorch has since 2.11.
namespace host_calls {

template <class Host> void end(Host* host, c10::MempoolId_t pool) {
  if constexpr (requires { host->end_allocate_to_pool(pool); }) host->end_allocate_to_pool(pool);
}

template <class Host> void release(Host* host, c10::MempoolId_t pool) {
  if constexpr (requires { host->release_pool(pool); }) host->release_pool(pool);
}

}  // namespace host_calls

// Records work in its own stream, because CUDA cannot record the default stream. Other threads keep
// using their streams, for example to copy the next batch. LibTorch records random operations with
// the device's generator: each replay reads its seed and offset anew.
class Graph {
 public:
  // Frees the allocator's cache first. During a recording the allocator frees no cached block, and
  // the recording's own pool needs the same amount of memory again.
  explicit Graph(int device) : device_(static_cast<c10::DeviceIndex>(device)) {
    const c10::cuda::CUDAGuard on(device_);
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const auto before = current(device);
    const auto own = c10::cuda::getStreamFromPool(false, device_);
    at::cuda::CUDAEvent started;
    started.record(before);
    started.block(own);
    inside_.emplace(own);
    try {
      graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    } catch (const std::exception&) {
      leave_pool();
      throw;
    }
    open_ = true;
  }
  ~Graph() {
    if (!open_) return;
    each_as_far_as_it_goes([&] { graph_.capture_end(); });  // throws if it failed before
    leave_pool();
    each_as_far_as_it_goes([&] { renew_generator(device_); });
    static_cast<void>(cudaGetLastError());
  }
  Graph(Graph&&) = delete;
  // If it throws, ~Graph cleans up.
  void end() {
    graph_.capture_end();
    open_ = false;
    inside_.reset();
  }
  void replay() { graph_.replay(); }

 private:
  // The allocators stay in recording mode until endAllocateToPool() and keep the pool until it is
  // released. LibTorch does both after a successful recording. After a failed recording some
  // versions do only the first; no version does the second.
  void leave_pool() {
    const auto host = [] { return at::getHostAllocator(at::kCUDA); };
    each_as_far_as_it_goes(
        [&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, pool_); },
        [&] { host_calls::end(host(), pool_); });
    try {
      graph_.pool();  // throws if the graph will not release it
    } catch (const std::exception&) {
      each_as_far_as_it_goes([&] { c10::cuda::CUDACachingAllocator::releasePool(device_, pool_); },
          [&] { host_calls::release(host(), pool_); });
    }
  }

  c10::DeviceIndex device_;
  c10::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  at::cuda::CUDAGraph graph_;
  std::optional<c10::cuda::CUDAStreamGuard> inside_;
  bool open_ = false;
};

void* begin_graph(int device) { return std::make_unique<Graph>(device).release(); }
void end_graph(void* graph) { static_cast<Graph*>(graph)->end(); }
void replay_graph(void* graph) { static_cast<Graph*>(graph)->replay(); }
void free_graph(void* graph) { delete static_cast<Graph*>(graph); }

nn::CudaKernels table() {
  nn::CudaKernels kernels;
  kernels.build = TESSERA_VERSION;
  kernels.stream = stream;
  kernels.memory = memory;
  kernels.peak_memory = peak_memory;
  kernels.error_text = error_text;
  kernels.graphs = {begin_graph, end_graph, replay_graph, free_graph};
  return kernels;
}

}  // namespace

const nn::CudaKernels* tessera_cuda_kernels() {
  static const nn::CudaKernels kernels = table();
  return &kernels;
}
