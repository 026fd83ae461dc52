#pragma once
// Numbers split into groups of digits from the right, as in 1|234|567. Other people's tokenizers do
// it with a pattern that looks ahead to the end of the number at each group,
//
//   \p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))    or, as places between groups,    (?=(\d{3})+(?!\d))
//
// so that its time grows with the square of a number's length. This is one pass instead.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace text {

struct DigitGroups {
  enum class Digits : std::uint8_t { number, decimal, ascii };  // \p{N}; \d, \p{Nd}; [0-9]
  Digits digits = Digits::number;
  std::size_t size = 3;      ///< digits of a group; the first one of a number may have fewer
  bool places = false;       ///< the pattern matches the empty places before whole groups
  bool others = false;       ///< it matches the text between numbers too (|\P{N}+)
  bool word_border = false;  ///< not the numbers that are followed by a character of a word (\b)

  bool is_digit(std::uint32_t code_point) const;

  /// A number: a run of digits [begin, end) of so many characters.
  struct Number {
    const char* begin;
    const char* end;
    std::size_t digits;
  };
  /// The first number in [p, end), where `end` ends the text; of no digits, at `end`, if there is
  /// none.
  Number find(const char* p, const char* end) const;
  /// True if the pattern splits a number that ends at `p`.
  bool splits_at(const char* p, const char* end) const;
  /// The start of the group or the rest of the number behind `n` digits from `p` on.
  static const char* skip(const char* p, const char* end, std::size_t n);
  /// The last place in (begin, end) where a piece ends whatever follows `end`, if one starts at
  /// `begin`; nullptr if there is none.
  const char* last_certain_end(const char* begin, const char* end) const;
};

/// Nothing for a pattern that is another.
std::optional<DigitGroups> digit_groups_of(std::string_view pattern);

}  // namespace text
