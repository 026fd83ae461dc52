#include "nn/base/torch_version.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "core/error.h"

namespace nn {
namespace {

struct Version {
  int major = 0, minor = 0;
  bool operator==(const Version&) const = default;
};

Version version_of(const std::string& text) {
  Version version;
  std::sscanf(text.c_str(), "%d.%d", &version.major, &version.minor);
  return version;
}

}  // namespace

// Looks the function up by name, so that a LibTorch without it gives an error message instead of a
// loader failure.
std::string loaded_torch() {
  using AbiVersion = std::uint64_t (*)();
  const auto abi = reinterpret_cast<AbiVersion>(::dlsym(RTLD_DEFAULT, "aoti_torch_abi_version"));
  if (abi == nullptr) return "";
  const std::uint64_t version = abi();  // one byte each: major, minor, patch
  return fmt::format("{}.{}.{}", version >> 56U, version >> 48U & 0xffU, version >> 40U & 0xffU);
}

void expect_torch(const std::string& built, const std::string& loaded) {
  const Version own = version_of(built), other = version_of(loaded);
  const bool neither_tells = loaded.empty() && own.major == 2 && own.minor < 9;
  if (neither_tells || own == other) return;
  core::fail(
      core::Code::unavailable,
      "built for LibTorch {}, but loaded {}; set LD_LIBRARY_PATH to the first, or rebuild for "
      "the second (LIBTORCH=DIR make)",
      built, loaded.empty() ? "an older one" : loaded);
}

}  // namespace nn
