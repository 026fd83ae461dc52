#pragma once
// Unicode as Python's str has it: cases, digits and classes of characters.

#include "text/tokenizer/utf8.h"

namespace text::chat {

/// Calls visit(character, code point) for each character of a text; a byte that is not UTF-8 counts
/// as a character, whose code point is Char::kInvalid.
template <class Visit> void each_character(std::string_view text, const Visit& visit) {
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const auto c = decode_char(p, end);
    visit(std::string_view(p, c.bytes), c.code_point);
    p += c.bytes;
  }
}

/// Return true as the method of the same name of a text of one character does.
bool is_space(std::uint32_t code_point);
bool is_lower(std::uint32_t code_point);
bool is_upper(std::uint32_t code_point);
bool is_cased(std::uint32_t code_point);
bool is_digit(std::uint32_t code_point);
bool is_numeric(std::uint32_t code_point);
bool is_alpha(std::uint32_t code_point);
bool is_alnum(std::uint32_t code_point);
bool is_printable(std::uint32_t code_point);
/// Returns the value of a decimal digit of any script; -1 for other characters.
int decimal_value(std::uint32_t code_point);

/// Appends a code point as UTF-8.
void append_code(std::string& out, std::uint32_t code_point);
/// Appends a character in upper case, in title case, or folded; it may become several.
void append_upper(std::string& out, std::string_view character, std::uint32_t code_point);
void append_title(std::string& out, std::string_view character, std::uint32_t code_point);
void append_folded(std::string& out, std::string_view character, std::uint32_t code_point);
/// Appends a character of `text`, which begins at `at`, in lower case. A sigma that ends a word has
/// a form of its own.
void append_lower(std::string& out, std::string_view text, std::size_t at, const Char& character);

}  // namespace text::chat
