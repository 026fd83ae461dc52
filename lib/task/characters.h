#pragma once
// Length of a text as people count it.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace task {

/// Characters of UTF-8: bytes that continue none.
inline std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace task
