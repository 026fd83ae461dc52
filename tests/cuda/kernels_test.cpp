// The kernels of lib/nn/kernels/*.cu, on a GPU if there is one, or compiled as C++ with
// tests/cuda/emulated on the CPU.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include "kernel_cases.h"

namespace cuda_test {

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> all;
  for (const auto& some : {delta_scan_cases(), gated_keys_cases(), leaky_cases(), memory_cases(),
           optimiser_cases(), row_softmax_cases(), sru_scan_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace cuda_test

DOCTEST_TEST_CASE("every CUDA kernel computes what its twin on the CPU does") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    DOCTEST_MESSAGE("SKIP no CUDA device here: the kernels were compiled, and run emulated only");
    return;
  }
  for (const auto& kernel : cuda_test::kernel_cases()) {
    DOCTEST_CAPTURE(kernel.name);
    DOCTEST_CHECK(kernel.run() < 1);
  }
}
