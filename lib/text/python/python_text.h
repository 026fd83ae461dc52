#pragma once
// Implements text operations of Python's str on UTF-8, in time linear in their texts.
// Unicode as Python's str has it: cases, digits and classes of characters.

#include "text/tokenizer/utf8.h"

namespace text::python {

/// What utf8proc does not know of Python's characters, a line a table: its name, a tab, code points
/// and ranges of them in hexadecimal digits. "lower" and "upper" are Unicode's Other_Lowercase and
/// Other_Uppercase, "digit" the digits that are not decimal, "numeral" the ideographs of numbers;
/// tables named by a code point are its upper case, where that has several characters.
extern const std::string_view kCharacters;

/// Calls visit(character, code point) for each character of a text; a byte that is not UTF-8 counts
/// as a character, whose code point is Char::kInvalid.
template <class Visit> void each_character(std::string_view text, const Visit& visit) {
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const auto c = decode_char(p, end);
    visit(std::string_view(p, c.bytes), c.code_point);
    p += c.bytes;
  }
}

/// Appends the text of a string literal, whose quote is at `at`, to `out` and returns the place
/// after it. `fail` must throw for the text that says what is wrong. \N{...} is not supported.
std::size_t read_quoted(std::string_view source, std::size_t at, std::string& out,
    const std::function<void(const char*)>& fail);

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

/// Appends a character in upper case, in title case, or folded; it may become several.
void append_upper(std::string& out, std::string_view character, std::uint32_t code_point);
void append_title(std::string& out, std::string_view character, std::uint32_t code_point);
void append_folded(std::string& out, std::string_view character, std::uint32_t code_point);
/// Appends a character of `text`, which begins at `at`, in lower case. A sigma that ends a word has
/// a form of its own.
void append_lower(std::string& out, std::string_view text, std::size_t at, const Char& character);

std::size_t character_count(std::string_view text);
/// Returns the place of the byte at which a character begins; the text's size if it has no more
/// than `place` characters.
std::size_t byte_of(std::string_view text, std::size_t place);

/// Return the place of the first occurrence from a place on, and of the last one; npos if there is
/// none.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t find_last(std::string_view text, std::string_view part);
/// Counts occurrences that do not overlap; an empty part is at every character and at the end.
std::size_t count_text(std::string_view text, std::string_view part);

/// Implements strip(), lstrip() and rstrip(). `chars` are the characters to remove; null means
/// white space.
std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string casefolded(std::string_view text);
std::string case_swapped(std::string_view text);
/// Implements str.capitalize(): the first character becomes title case, the others lower case.
std::string capitalized(std::string_view text);
/// Implements str.title(): each letter that does not follow a letter becomes title case.
std::string titled(std::string_view text);
/// Implements Jinja's filter title, whose words begin after white space and after - ( { [ <.
std::string title_words(std::string_view text);
/// Replaces at most `most` occurrences; a negative number means all. `expect` gets the result's
/// size before the work.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
    std::int64_t most, const std::function<void(double)>& expect);
/// Implement split() and rsplit() with at most `most` splits; a negative number means all. A null
/// `separator` means white space. `put` gets the parts, from_right: the last one first.
using Parts = std::function<void(std::string_view)>;
void split(std::string_view text, const std::string* separator, std::int64_t most, bool from_right,
    const Parts& put);
void split_lines(std::string_view text, bool keep_ends, const Parts& put);
/// Implements expandtabs().
std::string expanded_tabs(
    std::string_view text, std::int64_t width, const std::function<void(double)>& expect);

/// Returns true if all characters of a text pass a test (isdigit() and the like). An empty text
/// passes none.
bool all_are(std::string_view text, bool test(std::uint32_t));
/// Implement islower() and isupper(), and istitle().
bool is_of_case(std::string_view text, bool upper);
bool is_titled(std::string_view text);

}  // namespace text::python
