#include "nn/base/cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include "core/build_info.h"

namespace nn {
namespace {

const CudaKernels* g_kernels = nullptr;
const CudaKernels* g_kernels_before = nullptr;
std::optional<torch::DeviceType> g_as_device;  // set by AsDevice

void* open_library(const char* name, const char* meaning) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) return library;
  const char* const why = ::dlerror();
  core::fail(
      core::Code::unavailable, "{} ({}); see tessera(7)", meaning, why != nullptr ? why : name);
}

const CudaKernels* kernels_of(torch::Device device) {
  return device.is_cuda() || device.type() == g_as_device ? g_kernels : nullptr;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void load_cuda() {
  static bool loaded = false;
  if (loaded) return;
  open_library("libtorch_cuda.so", "this build's LibTorch has no CUDA part");
  void* const plugin = open_library("libtessera_cuda.so", "this build has no CUDA kernels");
  const auto table =
      reinterpret_cast<decltype(&tessera_cuda_kernels)>(::dlsym(plugin, "tessera_cuda_kernels"));
  const CudaKernels* const kernels = table != nullptr ? table() : nullptr;
  if (kernels == nullptr || std::strcmp(kernels->build, core::build::kVersion) != 0)
    core::fail(core::Code::unavailable,
        "libtessera_cuda.so and this program are from different builds; rebuild both");
  try {
    at::detail::getCUDAHooks().init();
  } catch (const c10::Error& error) {
    core::fail(core::Code::unavailable, "{}", first_line(error.what_without_backtrace()));
  }
  g_kernels = kernels;
  loaded = true;
}

bool has_nvidia_driver() {
  return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

const CudaKernels* cuda_kernels(const torch::Tensor& x) {
  return x.scalar_type() == torch::kFloat32 ? kernels_of(x.device()) : nullptr;
}

const GraphCalls* graph_calls(torch::Device device) {
  const CudaKernels* const kernels = kernels_of(device);
  return kernels != nullptr && kernels->graphs.begin != nullptr ? &kernels->graphs : nullptr;
}

void* cuda_stream(const torch::Tensor& x) {
  return g_kernels->stream == nullptr ? nullptr : g_kernels->stream(x.get_device());
}

void check_launch(int error, const char* kernel) {
  if (error == 0) return;
  const bool has_text = g_kernels != nullptr && g_kernels->error_text != nullptr;
  core::fail(core::Code::unavailable, "cannot launch {}: CUDA error {}{}", kernel, error,
      has_text ? fmt::format(" ({})", g_kernels->error_text(error)) : "");
}

std::int64_t device_memory(torch::Device device) {
  if (device.is_cpu() || g_kernels == nullptr || g_kernels->memory == nullptr) return 0;
  return g_kernels->memory(std::max<int>(0, device.index()));
}

std::optional<std::int64_t> device_peak_memory(torch::Device device) {
  const CudaKernels* const kernels = kernels_of(device);
  if (kernels == nullptr || kernels->peak_memory == nullptr) return std::nullopt;
  return kernels->peak_memory(std::max<int>(0, device.index()));
}

bool in_host_memory(const torch::Tensor& x) { return x.is_cpu() && g_as_device != torch::kCPU; }

AsDevice::AsDevice(const CudaKernels* kernels, torch::DeviceType device) {
  g_as_device = device;
  g_kernels_before = g_kernels;
  g_kernels = kernels;
}

AsDevice::~AsDevice() {
  g_as_device.reset();
  g_kernels = g_kernels_before;
}

}  // namespace nn
