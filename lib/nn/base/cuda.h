#pragma once
// CUDA support. Programs do not link CUDA: they load it if --device requests it.

#include <cstdint>
#include <optional>
#include <string>

#include "nn/base/torch.h"
#include "nn/kernels/cuda_kernels.h"

namespace nn {

/// Loads libtessera_cuda.so and LibTorch's CUDA library, once, and initialises CUDA. Call it before
/// any request for a CUDA device (torch::manual_seed makes one), because LibTorch caches its first
/// answer. Throws Error{unavailable} with one line that names the missing part. Not thread safe.
void load_cuda();

/// Returns whether an NVIDIA driver is present; reads the file system and does not call CUDA.
bool has_nvidia_driver();

/// Returns the plug-in's kernels for a tensor in GPU memory; null if the tensor is not float32 or
/// is on the CPU.
const CudaKernels* cuda_kernels(const torch::Tensor& x);

/// Returns the CUDA stream for kernel launches on `x`.
void* cuda_stream(const torch::Tensor& x);
/// Throws Error{unavailable} with CUDA's error text if a launch failed.
void check_launch(int error, const char* kernel);

/// Returns the calls that record graphs on `device`; null if the device cannot record.
const GraphCalls* graph_calls(torch::Device device);

/// Returns the peak number of bytes that this process's tensors used on the device, including
/// tensors of recordings; nullopt for the CPU or if unknown.
std::optional<std::int64_t> device_peak_memory(torch::Device device);

/// Returns the memory of a GPU in bytes; 0 for the CPU or if unknown.
std::int64_t device_memory(torch::Device device);

/// Returns whether raw loops on the CPU may read the tensor's memory.
bool in_host_memory(const torch::Tensor& x);

/// Makes tensors of `device` count as GPU tensors while the object exists, for tests: raw loops are
/// off, and `kernels`, if given, run on the CPU (tests/cuda/emulated). Not thread safe.
class AsDevice {
 public:
  explicit AsDevice(const CudaKernels* kernels = nullptr, torch::DeviceType device = torch::kCPU);
  ~AsDevice();
  AsDevice(const AsDevice&) = delete;
  AsDevice& operator=(const AsDevice&) = delete;
};

}  // namespace nn
