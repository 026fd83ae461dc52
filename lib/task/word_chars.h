#pragma once
// Defines the bytes that form words.

#include <cctype>

namespace task {

/// Returns true for the byte of an ASCII letter or digit, and of any character beyond ASCII.
inline bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80U;
}

}  // namespace task
