#pragma once
// Text in UTF-8, told from other bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace core {

class ByteSource;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

std::string_view without_byte_order_mark(std::string_view text);

/// Bytes of the character at the front of `text`, which is not empty; 0 if no whole character is
/// there (the Unicode Standard, table 3-7).
std::size_t character_length(std::string_view text);
/// How many bytes at the front are UTF-8: all of them if `text` is.
std::size_t utf8_length(std::string_view text);
/// Bytes (0 to 3) at the end of `text` that begin a character which further bytes may complete.
std::size_t unfinished_bytes(std::string_view text);
/// U+FFFD for each part that is not UTF-8, as browsers and Python write it; adds to `replaced` how
/// many.
std::string with_replacements(std::string_view text, std::uint64_t& replaced);

/// What is wrong at `at`, where utf8_length() ends: "byte 7 (0xe9) is not UTF-8; ...". `before` is
/// added to the number that is named.
std::string what_is_not_utf8(std::string_view text, std::size_t at, std::uint64_t before = 0);
/// what_is_not_utf8() of the first byte that is not UTF-8; empty if there is none.
std::string utf8_fault(std::string_view text);
/// What a file that begins with `start` is if it is no text in UTF-8, and what makes text of it:
/// UTF-16, a compressed file, a PDF. Empty if nothing is known of such a beginning. Some hundred
/// bytes suffice.
std::string what_is_no_text(std::string_view start);
/// Throws Error{bad_data} naming `name` for what_is_no_text() of `start`.
void expect_text(std::string_view start, const std::string& name);
/// `start`, the beginning of a file, is not empty and holds characters of UTF-8 alone, whole but
/// for the last, of which none is a control but tabs, ends of lines and pages.
bool begins_as_text(std::string_view start);
/// A file that begins with `start` is compressed by bzip2; 10 bytes suffice.
bool is_bzip2(std::string_view start);

/// All of a source, without its byte order mark. Throws Error{bad_data} naming the source, the byte
/// and what to do, where it is not UTF-8, and as read_text() does.
std::string read_utf8(ByteSource& source);

}  // namespace core
