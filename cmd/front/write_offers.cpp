// write_offers LIBRARY FOLDER PROGRAM... writes FOLDER/PROGRAM.cpp with the offer of each program
// of libtessera.so, for its front. Only the build uses it. A file that already has the right text
// is not rewritten.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "front/front.h"

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  void* const library = ::dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  const auto offer_of =
      library ? reinterpret_cast<front::OfferOf>(::dlsym(library, front::kOfferOf)) : nullptr;
  if (!offer_of) {
    std::fprintf(stderr, "write_offers: %s\n", ::dlerror());
    return 69;
  }
  for (int i = 3; i < argc; ++i) {
    char* const offer = offer_of(argv[i]);
    const std::string path = std::string(argv[2]) + "/" + argv[i] + ".cpp";
    const std::string text = std::string("#include \"front/front.h\"\n\nnamespace front {\n") +
                             "const char* const kProgram = \"" + argv[i] + "\";\n" +
                             "const char* const kOffer = R\"offer(" + offer + ")offer\";\n}\n";
    std::free(offer);
    std::ifstream old(path, std::ios::binary);
    if (old && std::string(std::istreambuf_iterator<char>(old), {}) == text) continue;
    std::ofstream out(path, std::ios::binary);
    if (!(out << text << std::flush)) {
      std::fprintf(stderr, "write_offers: %s cannot be written\n", path.c_str());
      return 74;
    }
  }
  std::fflush(nullptr);
  ::_Exit(0);  // skips the libraries' destructors, which take longer than the work
}
