#include "nn/runtime.h"

#include <malloc.h>

#include "core/error.h"

namespace nn {

void start(std::int64_t threads, std::uint64_t seed) {
  // Page faults cost a training step 12 to 19 %: large blocks stay in the heap, which is not
  // trimmed.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  ::mallopt(M_TOP_PAD, 64 << 20);
  at::globalContext().setFlushDenormal(true);  // denormals make a step six times slower
  at::set_num_threads(static_cast<int>(threads));
  torch::manual_seed(seed);
}

torch::Device device(const std::string& name) {
  if (name == "auto") return torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  try {
    const torch::Device device(name);
    if (device.is_cuda() && !torch::cuda::is_available())
      core::fail(core::Code::unavailable,
                 "--device {}: no CUDA device, or a build without CUDA; use cpu", name);
    return device;
  } catch (const c10::Error&) {
    core::fail(core::Code::usage, "--device: '{}' is not a device; use cpu, cuda or auto", name);
  }
}

torch::Dtype dtype(const std::string& precision) {
  if (precision == "float64") return torch::kFloat64;
  return precision == "bfloat16" ? torch::kBFloat16 : torch::kFloat32;
}

}  // namespace nn
