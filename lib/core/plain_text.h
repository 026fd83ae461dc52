#pragma once
// Text in UTF-8, told from other bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace core {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

std::string_view without_byte_order_mark(std::string_view text);

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
/// What a file that begins with `start` is if it is no text in UTF-8, and what makes text of it:
/// UTF-16, a compressed file, a PDF. Empty if nothing is known of such a beginning. Some hundred
/// bytes suffice.
std::string what_is_no_text(std::string_view start);

/// A whole file's text without its byte order mark. Throws Error{bad_data} naming `name`, the byte
/// and what to do, where it is not UTF-8.
std::string expect_utf8(std::string text, const std::string& name);

}  // namespace core
