#pragma once
// Tells memory that is not there from tensors that do not go together: LibTorch throws c10::Error
// for both.

#include <string_view>

#include "nn/base/torch.h"

namespace nn {

/// Whether an allocation failed, on the CPU or on a device. Who catches c10::Error to blame a file
/// throws such an error on.
inline bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string_view text = error.what_without_backtrace();
  return text.find("can't allocate memory") != text.npos ||
         text.find("not enough memory") != text.npos;
}

}  // namespace nn
