// The executable of a program that links LibTorch. It handles --help, wrong options and the like at
// once. It loads libtessera.so, which holds the program itself, only when there is work: LibTorch
// takes a fifth of a second to load.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/offer.h"
#include "core/error.h"
#include "front/fork_server.h"
#include "front/front.h"

namespace {

int whole(int argc, char** argv) {
#ifdef TESSERA_FORK_SERVER
  if (const auto code = front::forked(front::kProgram, argc, argv)) return *code;
#endif
  // Threads of LibTorch's OpenMP wait at a barrier for milliseconds of computing, which another
  // process on the same cores loses. So they wait for some 30 microseconds and then sleep.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "1500", 0);
  // RTLD_NOW would also look up every function that LibTorch calls, which takes 20 ms.
  void* const library = ::dlopen("libtessera.so", RTLD_LAZY | RTLD_GLOBAL);
  if (!library) core::fail(core::Code::unavailable, "{}", ::dlerror());
  const auto main_of = reinterpret_cast<front::MainOf>(::dlsym(library, front::kMainOf));
  if (!main_of) core::fail(core::Code::unavailable, "{}", ::dlerror());
  return main_of(front::kProgram)(argc, argv);
}

// Ends the process without the destructors of static objects: those of LibTorch's registries take a
// third of the time of a short run. A preloaded library may have work at the end, as profilers
// have, and the sanitizers look for leaks then.
void leave([[maybe_unused]] int code) {
#if !defined(__SANITIZE_ADDRESS__)
  const char* const preloaded = std::getenv("LD_PRELOAD");
  if (preloaded != nullptr && *preloaded != '\0') return;
  std::fflush(nullptr);
  ::_exit(code);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  bool loaded = false;
  const int code = cli::front(argc, argv, front::kOffer, [&] {
    loaded = true;
    return whole(argc, argv);
  });
  if (loaded) leave(code);
  return code;
}
