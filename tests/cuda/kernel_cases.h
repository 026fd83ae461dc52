#pragma once
// Every kernel of lib/nn/kernels/*.cu against its twin on the CPU, whose own tests hold it to the
// formulas. Sizes are odd, so that the last block, warp and step are not whole.

#include <functional>
#include <string>
#include <vector>

namespace cuda_test {

struct KernelCase {
  std::string name;
  /// Runs both; the largest gap between them in units of what is allowed: below 1 is right.
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
