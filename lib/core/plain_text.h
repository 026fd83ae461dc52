#pragma once
// Distinguishes UTF-8 text from other bytes.
// Decodes UTF-8 one character at a time. An invalid byte counts as a character of one byte, so that
// no byte is lost.
// Makes untrusted text (names of files, their contents) safe to print on a terminal.

#include "core/base.h"

namespace core {

class ByteSource;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Returns `text` without a byte order mark at its start.
std::string_view without_byte_order_mark(std::string_view text);

/// Returns the number of bytes of the first character of `text`, which is not empty; 0 if `text`
/// does not begin with a whole character (the Unicode Standard, table 3-7).
std::size_t character_length(std::string_view text);
/// Returns the length in bytes of the longest prefix that is UTF-8.
std::size_t utf8_length(std::string_view text);
/// Returns the number of bytes (0 to 3) at the end of `text` that begin a character which further
/// bytes may complete.
std::size_t unfinished_bytes(std::string_view text);
/// Removes the whole characters from the front of `text` and returns them; what may be the
/// beginning of one more stays.
std::string take_characters(std::string& text);
/// Replaces each part that is not UTF-8 by U+FFFD, as browsers and Python do, and adds the number
/// of replacements to `replaced`.
std::string with_replacements(std::string_view text, std::uint64_t& replaced);

/// Returns the number of bytes at the front of `text`, which is not empty, that are one character
/// of with_replacements().
std::size_t replaced_length(std::string_view text);

/// Describes the invalid byte at offset `at`, which is utf8_length(): "byte 7 (0xe9) is not UTF-8;
/// ...". `before` is added to the reported position.
std::string what_is_not_utf8(std::string_view text, std::size_t at, std::uint64_t before = 0);
/// Returns what_is_not_utf8() for the first invalid byte, or an empty text if there is none.
std::string utf8_fault(std::string_view text);
/// Says what a file that begins with `start` is if it is not UTF-8 text, and how to convert it to
/// text: UTF-16, a compressed file, a PDF. Returns an empty text for an unknown beginning. A few
/// hundred bytes suffice.
std::string what_is_no_text(std::string_view start);
/// Throws Error{bad_data}, naming `name`, if what_is_no_text() recognises `start`.
void expect_text(std::string_view start, const std::string& name);
/// Returns true if `start`, the beginning of a file, is not empty and consists of UTF-8 characters
/// without controls other than tabs, line ends and form feeds. The last character may be
/// incomplete.
bool begins_as_text(std::string_view start);
/// Returns true if a file that begins with `start` is compressed by bzip2; 10 bytes suffice.
bool is_bzip2(std::string_view start);

/// Reads all of a source, without its byte order mark. Throws Error{bad_data}, naming the source,
/// the byte and what to do, if it is not UTF-8; throws as read_text() does.
std::string read_utf8(ByteSource& source);

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

/// Returns the number of bytes of the first character of `text` (not empty) if it is printable:
/// ASCII from the space on, or UTF-8 other than the controls U+0080-9F. Returns 0 otherwise.
std::size_t printable_length(std::string_view text);

/// Returns `text` as one line without control sequences: every byte that is not part of a printable
/// character becomes \xHH.
std::string printable(std::string_view text);

}  // namespace core
