// The executable of a program that links LibTorch. It handles --help, wrong options and the like at
// once. It loads libtessera.so, which holds the program itself, only when there is work: LibTorch
// takes a fifth of a second to load.

#include <dlfcn.h>

#include "cli/offer.h"
#include "core/error.h"
#include "front/front.h"

namespace {

int whole(int argc, char** argv) {
  void* const library = ::dlopen("libtessera.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library) core::fail(core::Code::unavailable, "{}", ::dlerror());
  const auto main_of = reinterpret_cast<front::MainOf>(::dlsym(library, front::kMainOf));
  if (!main_of) core::fail(core::Code::unavailable, "{}", ::dlerror());
  return main_of(front::kProgram)(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::front(argc, argv, front::kOffer, [&] { return whole(argc, argv); });
}
