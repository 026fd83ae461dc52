// How many threads a process has when MKL first looks at the processor, which two must not do at
// once (nn/base/runtime.cpp): in the file that FIRST_LOOK names, where one does.

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

// MKL's own, which each of its functions of a vector calls.
extern "C" int mkl_vml_serv_cpu_detect() {
  [[maybe_unused]] static const bool written = write_threads();
  return reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "mkl_vml_serv_cpu_detect"))();
}
