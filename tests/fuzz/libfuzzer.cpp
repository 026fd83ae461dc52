// The entry point that libFuzzer calls. It runs the program's only target.

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto run = fuzz::targets().begin()->second.run;
  run(data, size);
  return 0;
}
