#pragma once
// CUDA, which programs do not link: it is loaded where --device asks for it.

#include <cstdint>
#include <optional>
#include <string>

#include "nn/base/torch.h"
#include "nn/kernels/cuda_kernels.h"

namespace nn {

/// Loads libtessera_cuda.so and LibTorch's CUDA library, once, and starts CUDA. Whoever asks
/// LibTorch for a CUDA device before that (torch::manual_seed does) never gets one: LibTorch keeps
/// its first answer. Throws Error{unavailable} with one line that names what is missing. Not thread
/// safe.
void load_cuda();

/// Whether a driver of NVIDIA's runs here; asks the file system, not CUDA.
bool has_nvidia_driver();

/// The plug-in's kernels for a tensor in a GPU's memory; null if there are none: not float32, or on
/// the CPU.
const CudaKernels* cuda_kernels(const torch::Tensor& x);

/// What a kernel's launch for `x` runs in.
void* cuda_stream(const torch::Tensor& x);
/// Throws Error{unavailable} if a launch failed, with CUDA's text of the error.
void check_launch(int error, const char* kernel);

/// What a device records with; null where there is nothing that can.
const GraphCalls* graph_calls(torch::Device device);

/// The most bytes of its memory that tensors of this process had at once, those of recordings among
/// them; none for the CPU, and where it is not known.
std::optional<std::int64_t> device_peak_memory(torch::Device device);

/// Bytes of memory that a GPU has; 0 for the CPU, and where it is not known.
std::int64_t device_memory(torch::Device device);

/// Whether raw loops on the CPU may read the tensor's memory.
bool in_host_memory(const torch::Tensor& x);

/// For tests: while it lives, tensors of `device` are taken for a GPU's, without raw loops; with
/// kernels that run on the CPU (tests/cuda/emulated) where `kernels` is given. Not thread safe.
class AsDevice {
 public:
  explicit AsDevice(const CudaKernels* kernels = nullptr, torch::DeviceType device = torch::kCPU);
  ~AsDevice();
  AsDevice(const AsDevice&) = delete;
  AsDevice& operator=(const AsDevice&) = delete;
};

}  // namespace nn
