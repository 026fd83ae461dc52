#pragma once
// The library with NCCL's interface that computes on the CPU (tests/nccl).

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

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

/// Returns the bytes that this process, which is connected by the library, has sent through it to
/// other ranks.
inline std::int64_t nccl_stub_bytes() {
  void* const library = ::dlopen(::getenv("TESSERA_NCCL"), RTLD_NOW | RTLD_NOLOAD);
  const auto bytes = library == nullptr ? nullptr
                                        : reinterpret_cast<std::int64_t (*)()>(
                                              ::dlsym(library, "nccl_stub_bytes"));
  return bytes == nullptr ? -1 : bytes();
}

/// Returns the bytes that this process has written to files and sockets, as Gloo's; -1 if the
/// system does not count them. The library writes to shared memory.
inline std::int64_t written_bytes() {
  std::ifstream in("/proc/self/io");
  std::string name;
  std::int64_t value = 0;
  while (in >> name >> value)
    if (name == "wchar:") return value;
  return -1;
}
