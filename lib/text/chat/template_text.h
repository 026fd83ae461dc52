#pragma once
// Implements text operations of Python's str on UTF-8.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/utf8.h"

namespace text::chat {

/// Splits a text into characters; a byte that is not UTF-8 counts as a character.
std::vector<std::string_view> characters(std::string_view text);
std::size_t character_count(std::string_view text);
/// Returns str.isspace() of one character.
bool is_space(std::uint32_t code_point);

/// Implements strip(), lstrip() and rstrip(). `chars` are the characters to remove; null means
/// white space.
std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// Implements str.capitalize(): the first character becomes upper case, the others lower case.
std::string capitalized(std::string_view text);
/// Implements str.title(): each letter that does not follow a letter becomes upper case.
std::string titled(std::string_view text);
/// Implements Jinja's filter title, whose words begin after white space and after - ( { [ <.
std::string title_words(std::string_view text);
/// Replaces at most `most` occurrences; a negative number means all.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most);
/// Implements split() and rsplit() with at most `most` splits; a negative number means all. A null
/// `separator` means white space.
std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

enum class CharTest : std::uint8_t { digit, letter, alnum, space, upper, lower };
/// Returns true if all characters of a non-empty text pass the test (isdigit() and the like).
bool all_are(std::string_view text, CharTest test);

}  // namespace text::chat
