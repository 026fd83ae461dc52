#pragma once
// Which bytes words are made of.

#include <cctype>

namespace task {

/// True for a byte of a letter or a digit of ASCII, or of any character beyond it.
inline bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80U;
}

}  // namespace task
