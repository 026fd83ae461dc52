#pragma once
// The library with NCCL's interface that computes on the CPU (tests/nccl).

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>

/// Makes this process and its children use the library, which is beside the test's binary. Returns
/// false, and says that a test is skipped, if it is not there.
inline bool use_nccl_stub() {
  const auto library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libnccl_stub.so";
  if (!std::filesystem::exists(library)) {
    DOCTEST_MESSAGE("SKIP " << library.string() << " is not there");
    return false;
  }
  ::setenv("TESSERA_NCCL", library.c_str(), /*overwrite=*/1);
  return true;
}
