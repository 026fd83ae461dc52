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

DOCTEST_TEST_CASE("tensors are put into huge pages, and keep their numbers") {
  const auto large = torch::full({std::int64_t{8} << 20}, 3.0f), small = torch::ones({4});
  nn::expect_huge_pages(std::vector{small, large, torch::empty({0})});
  DOCTEST_CHECK((large == 3).all().item<bool>());
  DOCTEST_CHECK((small == 1).all().item<bool>());
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled") ||
      flags_at(large.const_data_ptr()).empty()) {
    DOCTEST_MESSAGE("SKIP: the system has no transparent huge pages, or does not list them");
    return;
  }
  const auto* const numbers = large.const_data_ptr<float>();
  for (const std::int64_t at : {1, 4, 7})
    DOCTEST_CHECK(flags_at(numbers + (at << 20)).find(" hg ") != std::string::npos);
}
