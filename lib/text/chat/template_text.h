#pragma once
// Texts as Python's str has them, in UTF-8.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/utf8.h"

namespace text::chat {

/// A byte that is not UTF-8 is a character.
std::vector<std::string_view> characters(std::string_view text);
std::size_t character_count(std::string_view text);
/// str.isspace() of one character.
bool is_space(std::uint32_t code_point);

/// strip(), of one side or both; `chars`: those characters, null: white space.
std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// The first character upper, the others lower.
std::string capitalized(std::string_view text);
/// str.title(): each letter behind none is upper.
std::string titled(std::string_view text);
/// Jinja's filter title, whose words begin behind white space and - ( { [ <.
std::string title_words(std::string_view text);
/// At most `most` times; negative: all.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most);
/// split(): `separator` null: white space. At most `most` cuts; negative: all.
std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

enum class CharTest : std::uint8_t { digit, letter, alnum, space, upper, lower };
/// isdigit() and the like of all characters of a text that is not empty.
bool all_are(std::string_view text, CharTest test);

}  // namespace text::chat
