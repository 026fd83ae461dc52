#pragma once
// Distinguishes UTF-8 text from other bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace core
