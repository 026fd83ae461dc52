// Huge pages for tensors, as the system's list of mappings shows them.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nn/base/pages.h"
#include "nn/base/torch.h"

namespace {

// Returns the flags of the mapping around an address; empty if the system does not list them.
std::string flags_at(const void* address) {
  const auto sought = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream mappings("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(mappings, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end && dash == '-')
      here = begin <= sought && sought < end;
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

}  // namespace

DOCTEST_TEST_CASE("tensors are moved to huge pages but for those that share their memory") {
  auto large = torch::empty({std::int64_t{8} << 20});
  const auto small = torch::empty({4, 2}).requires_grad_(), shared = torch::full({6}, 3.0f);
  const auto part = shared.slice(0, 2, 4), turned = torch::full({2, 3}, 3.0f).t();
  nn::move_to_huge_pages(std::vector{small, large, small, part, turned, torch::empty({0})});
  DOCTEST_CHECK((shared == 3).all().item<bool>());
  DOCTEST_CHECK((turned == 3).all().item<bool>());
  DOCTEST_CHECK(small.sizes() == torch::IntArrayRef({4, 2}));
  DOCTEST_CHECK(small.requires_grad());
  DOCTEST_CHECK((small == 0).all().item<bool>());
  large.fill_(3);
  DOCTEST_CHECK((large == 3).all().item<bool>());
  DOCTEST_CHECK((small == 0).all().item<bool>());
  const auto at_line = [](const torch::Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64 == 0;
  };
  DOCTEST_CHECK((at_line(small) && at_line(large)));
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled") ||
      flags_at(large.const_data_ptr()).empty()) {
    DOCTEST_MESSAGE("SKIP: the system has no transparent huge pages, or does not list them");
    return;
  }
  const auto* const numbers = large.const_data_ptr<float>();
  for (const std::int64_t at : {0, 1, 4, 7})
    DOCTEST_CHECK(flags_at(numbers + (at << 20)).find(" hg ") != std::string::npos);
}
