#pragma once
// CUDA support. Programs do not link CUDA: they load it if --device requests it.
// Products of float32 numbers with the tensor cores of NVIDIA GPUs, which round factors to TF32: 8
// bits of exponent and 10 of mantissa.

#include "core/base.h"
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
  AsDevice(AsDevice&&) = delete;
};

/// Makes CUDA compute float32 products in TF32 while the object exists, if `on`. Not thread safe.
class Tf32 {
 public:
  explicit Tf32(bool on) : before_(at::globalContext().allowTF32CuBLAS()), on_(on) {
    if (on_) at::globalContext().setAllowTF32CuBLAS(true);
  }
  ~Tf32() {
    if (on_) at::globalContext().setAllowTF32CuBLAS(before_);
  }
  Tf32(Tf32&&) = delete;

 private:
  bool before_, on_;
};

/// Splits float32 numbers x into a TF32 number and the rest, whose sum is x. If the other factor is
/// TF32 too (float16 is), the sum of the products of both parts has relative errors near float32's:
/// the rest is rounded to 2^-11 of itself, thus to 2^-22 of x. The rest of an infinite x is 0.
inline std::pair<torch::Tensor, torch::Tensor> tf32_parts(const torch::Tensor& x) {
  constexpr std::int32_t kKept = ~0x1fff;  // all but the last 13 bits of 23
  const auto high = x.contiguous().view(torch::kInt32).bitwise_and(kKept).view(torch::kFloat32);
  return {high, (x - high).nan_to_num_(0, 0, 0)};
}

}  // namespace nn
