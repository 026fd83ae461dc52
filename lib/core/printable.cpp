#include "core/printable.h"

#include <fmt/format.h>

#include <iterator>

namespace core {

std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) >= 0x20 && byte(0) < 0x7F) return 1;
  const std::size_t n = byte(0) >= 0xF0 && byte(0) < 0xF5   ? 4
                        : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                        : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                                                            : 0;
  if (n == 0 || n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Too long a form, surrogates, beyond the last character; and the controls U+0080-9F.
  if ((byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
      (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F) ||
      (byte(0) == 0xC2 && byte(1) < 0xA0))
    return 0;
  return n;
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
