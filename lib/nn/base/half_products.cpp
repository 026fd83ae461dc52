#include "nn/base/half_products.h"

#include <ATen/Version.h>

#include "nn/base/runtime.h"

namespace nn {
namespace {

bool has_half_products() {
#if defined(__x86_64__)
  return at::get_cpu_capability() == "AVX512" && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return true;  // unknown
#endif
}

}  // namespace

void note_half_products(const std::string& option, torch::Device device) {
  static bool said = false;
  if (!device.is_cpu() || has_half_products() || std::exchange(said, true)) return;
  say(
      fmt::format("{}: this processor has no products in bfloat16 (AVX-512 BF16); they take "
                  "several times as long as those in float32",
          option));
}

}  // namespace nn
