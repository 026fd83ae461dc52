#pragma once
// Splits numbers into groups of digits from the right, as in 1|234|567. Tokenizers of other
// programs use a pattern that looks ahead to the end of the number at each group,
//
//   \p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))    or, as positions between groups,  (?=(\d{3})+(?!\d))
//
// so that the time grows with the square of a number's length. This code makes one pass.

#include "core/base.h"

namespace text {

/// A DigitGroups is a pattern that splits numbers into groups of digits.
struct DigitGroups {
  enum class Digits : std::uint8_t { number, decimal, ascii };  // \p{N}; \d, \p{Nd}; [0-9]
  Digits digits = Digits::number;
  /// Digits per group; the first group of a number may have fewer.
  std::size_t size = 3;
  bool places = false;       ///< the pattern matches the empty strings before whole groups
  bool others = false;       ///< it also matches the text between numbers (|\P{N}+)
  bool word_border = false;  ///< it skips numbers that precede a word character (\b)

  bool is_digit(std::uint32_t code_point) const;

  /// A Number is a run of digits [begin, end); `digits` counts its characters.
  struct Number {
    const char* begin;
    const char* end;
    std::size_t digits;
  };
  /// Finds the first number in [p, end), where `end` ends the text. Returns an empty number at
  /// `end` if there is none.
  Number find(const char* p, const char* end) const;
  /// Returns true if the pattern splits a number that ends at `p`.
  bool splits_at(const char* p, const char* end) const;
  /// Returns the position after `n` digits from `p` on.
  static const char* skip(const char* p, const char* end, std::size_t n);
  /// Assumes that a piece starts at `begin`. Returns the last position in (begin, end) where a
  /// piece ends regardless of the text after `end`; nullptr if there is none.
  const char* last_certain_end(const char* begin, const char* end) const;
};

/// Recognises a pattern; returns nothing for any other pattern.
std::optional<DigitGroups> digit_groups_of(std::string_view pattern);

}  // namespace text
