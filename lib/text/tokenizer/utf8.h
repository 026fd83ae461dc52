#pragma once
// Classifies characters (core/plain_text.h) as the pre-tokenizers need it. Bytes that are not UTF-8
// are of class `other`.

#include "core/plain_text.h"

namespace text {

using core::Char;
using core::decode_char;
using core::previous_char;

/// CharClass is the classification of GPT-2's pattern: \p{L}, \p{N}, \s (Unicode's White_Space),
/// other.
enum class CharClass : std::uint8_t { letter, number, space, other };

/// Returns the class of a code point, by utf8proc's Unicode version; kInvalid is `other`. Thread
/// safe.
CharClass class_of(std::uint32_t code_point);

/// Returns the start of the character that contains the byte at p.
inline const char* char_start(const char* begin, const char* p) {
  for (int i = 0; i < 3 && p > begin && core::is_continuation(*p); ++i) --p;
  return p;
}
/// Returns the first character from p on that is not white space, or `end`.
const char* skip_unicode_space(const char* p, const char* end);

/// LetterKind classifies letters by case, and marks, as o200k's pattern does.
enum class LetterKind : std::uint8_t {
  none,
  upper,   ///< \p{Lu}, \p{Lt}
  lower,   ///< \p{Ll}
  either,  ///< \p{Lm}, \p{Lo}, \p{M}
};
LetterKind letter_kind_of(std::uint32_t code_point);

/// Returns true for a decimal digit of any script (\p{Nd}).
bool is_decimal(std::uint32_t code_point);

/// Returns true for a word character (\w): letters, marks, decimal digits, connectors.
bool is_word_char(std::uint32_t code_point);

/// The class of each byte below 128.
extern const CharClass kAsciiClass[128];

/// Returns the end of the longest run of characters from p < end on in which
/// tokenizer.joins(left, right) holds for all neighbours.
template <class Tokenizer>
const char* end_of_joined(const char* p, const char* end, const Tokenizer& tokenizer) {
  Char left = decode_char(p, end);
  for (p += left.bytes; p < end;) {
    const Char right = decode_char(p, end);
    if (!tokenizer.joins(left.code_point, right.code_point)) break;
    p += right.bytes;
    left = right;
  }
  return p;
}

bool is_valid_utf8(std::string_view text);

/// Appends a code point as UTF-8.
void append_char(std::string& out, std::uint32_t code_point);

/// Counts words as `wc -w` does: maximal runs of bytes that are not ASCII white space. `in_word` is
/// state between the pieces of a text; it is false at the start.
std::uint64_t count_words(std::string_view piece, bool& in_word);

}  // namespace text
