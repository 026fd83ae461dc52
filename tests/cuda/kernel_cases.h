#pragma once
// Compares every kernel of lib/nn/kernels/*.cu with its CPU version, which other tests compare with
// the formulas. Sizes are odd, so that the last block, warp and step are incomplete.

#include <functional>
#include <string>
#include <vector>

namespace cuda_test {

struct KernelCase {
  std::string name;
  /// Runs both versions. Returns the largest gap in units of the tolerance: below 1 passes.
  std::function<double()> run;
};

std::vector<KernelCase> delta_scan_cases();
std::vector<KernelCase> gated_keys_cases();
std::vector<KernelCase> leaky_cases();
std::vector<KernelCase> memory_cases();
std::vector<KernelCase> optimiser_cases();
std::vector<KernelCase> row_softmax_cases();
std::vector<KernelCase> sru_scan_cases();

std::vector<KernelCase> kernel_cases();

}  // namespace cuda_test
