#include "core/printable.h"

#include <fmt/format.h>

#include <iterator>

#include "core/plain_text.h"

namespace core {

std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) >= 0x20 && byte(0) < 0x7F) return 1;
  if (byte(0) < 0x80) return 0;
  const std::size_t n = character_length(text);
  const bool is_control = n == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080-9F
  return is_control ? 0 : n;
}

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t n = printable_length(text);
    if (n > 0) {
      line += text.substr(0, n);
    } else {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(n > 0 ? n : 1);
  }
  return line;
}

}  // namespace core
