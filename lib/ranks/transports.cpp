#include "ranks/transports.h"

#include "core/error.h"

namespace ranks {

const std::vector<Library>& libraries() {
  static const std::vector<Library> all = {
      {"gloo", nullptr, nullptr},
      {"nccl", load_nccl, connect_nccl},
  };
  return all;
}

const Library& library(const std::string& name) {
  for (const auto& each : libraries())
    if (each.name == name) return each;
  core::fail(core::Code::usage, "'{}' does not connect ranks", name);
}

}  // namespace ranks
