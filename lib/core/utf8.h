#pragma once
// Decodes UTF-8 one character at a time. An invalid byte counts as a character of one byte, so that
// no byte is lost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace core {

/// A Char is one character: its code point (kInvalid for an invalid byte) and its length in bytes.
struct Char {
  static constexpr std::uint32_t kInvalid = 0xFFFFFFFF;
  std::uint32_t code_point;
  std::uint32_t bytes;
};

/// Returns true for a continuation byte.
inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Decodes the character at p < end. Overlong forms, surrogates and code points above 10FFFF are
/// invalid.
inline Char decode_char(const char* p, const char* end) {
  constexpr Char kBad{Char::kInvalid, 1};
  const auto byte = [p](int i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::ptrdiff_t left = end - p;
  if (lead >= 0xC2 && lead < 0xE0) {
    if (left < 2 || !is_continuation(p[1])) return kBad;
    return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (lead >= 0xE0 && lead < 0xF0) {
    if (left < 3 || !is_continuation(p[1]) || !is_continuation(p[2])) return kBad;
    const std::uint32_t code = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return kBad;
    return {code, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    if (left < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3]))
      return kBad;
    const std::uint32_t code =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (code < 0x10000 || code > 0x10FFFF) return kBad;
    return {code, 4};
  }
  return kBad;
}

/// Returns the start of the character that ends at p > begin.
inline const char* previous_char(const char* begin, const char* p) {
  const char* start = p - 1;
  for (int i = 0; i < 3 && start > begin && is_continuation(*start); ++i) --start;
  // The character that starts here must end at p; otherwise the byte before p is a character by
  // itself.
  const Char found = decode_char(start, p);
  return found.code_point != Char::kInvalid && start + found.bytes == p ? start : p - 1;
}

/// Returns the number of code points in UTF-8 text: its bytes that are not continuation bytes.
inline std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, std::not_fn(is_continuation)));
}

}  // namespace core
