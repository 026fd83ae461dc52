#pragma once
// Distinguishes memory exhaustion from inconsistent tensors: LibTorch throws c10::Error for both.

#include <string_view>

#include "nn/base/torch.h"

namespace nn {

/// Returns whether an allocation failed, on the CPU or on a device. A handler of c10::Error that
/// blames a file must rethrow such an error.
inline bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string_view text = error.what_without_backtrace();
  return text.find("can't allocate memory") != text.npos ||
         text.find("not enough memory") != text.npos;
}

}  // namespace nn
