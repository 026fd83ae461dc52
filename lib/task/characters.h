#pragma once
// Characters as people see them, in bytes of UTF-8.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace task {

/// Characters of UTF-8: bytes that continue none.
inline std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// Of a letter or a digit of ASCII, or of any character beyond it.
inline bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80U;
}

}  // namespace task
