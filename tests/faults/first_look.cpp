// Writes to the file named by FIRST_LOOK how many threads the process has when MKL first detects
// the processor. Two threads must not do that at once (nn/base/runtime.cpp).

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace {

bool write_threads() {
  const char* const name = std::getenv("FIRST_LOOK");
  std::FILE* const file = name != nullptr ? std::fopen(name, "w") : nullptr;
  if (file == nullptr) return false;
  const std::filesystem::directory_iterator threads("/proc/self/task");
  std::fprintf(file, "%td\n", std::distance(begin(threads), end(threads)));
  std::fclose(file);
  return true;
}

}  // namespace

// MKL's function, which each of its vector functions calls.
extern "C" int mkl_vml_serv_cpu_detect() {
  [[maybe_unused]] static const bool written = write_threads();
  return reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "mkl_vml_serv_cpu_detect"))();
}
