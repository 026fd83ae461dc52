#pragma once
// Splits a text into pre-tokens by one of the state machines, or by a sequence of steps, each of
// which splits the pieces of the previous one.
// Splits numbers into groups of digits from the right, as in 1|234|567. Tokenizers of other
// programs use a pattern that looks ahead to the end of the number at each group,
//
//   \p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))    or, as positions between groups,  (?=(\d{3})+(?!\d))
//
// so that the time grows with the square of a number's length. This code makes one pass.

#include "text/tokenizer/regex.h"

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

/// A SplitStep is one step of a general split.
struct SplitStep {
  enum class What { pattern, digit_groups, string, numbers, each_number, gpt2 };
  enum class Behaviour { isolated, removed, with_previous, with_next, contiguous };
  What what = What::pattern;
  Behaviour behaviour = Behaviour::isolated;
  bool invert = false;
  std::string text{};  ///< the pattern or the string
  std::shared_ptr<const Regex> regex{};
  DigitGroups groups{};
};

/// A Split is a pre-tokenizer.
class Split {
 public:
  enum class Kind : std::uint8_t {
    none,         ///< the whole text is one pre-token
    gpt2,         ///< gpt2_split.h
    llama3,       ///< gpt2_split.h with k = 3
    qwen2,        ///< gpt2_split.h with k = 1
    o200k,        ///< with k = 3 and contractions
    tekken,       ///< with k = 1, without contractions
    digits_gpt2,  ///< each digit alone, otherwise GPT-2's
    runs_gpt2,    ///< runs of digits, otherwise GPT-2's
    steps,
  };

  Split() = default;
  explicit Split(Kind kind) : kind_(kind) {}
  explicit Split(std::vector<SplitStep> steps) : kind_(Kind::steps), steps_(std::move(steps)) {}

  Kind kind() const { return kind_; }
  const std::vector<SplitStep>& steps() const { return steps_; }

  /// Returns the end of the pre-token that starts at p < end (not for steps); `end` ends the text.
  const char* pretoken_end(const char* p, const char* end) const;
  /// Appends the pre-tokens of a whole text in order (steps only). First adds the share of this
  /// text to `budget`. Throws Error{bad_data} if a pattern takes more steps than the budget holds.
  void split(std::string_view text, std::vector<std::string_view>& out, MatchBudget& budget) const;

  /// Returns true if a pre-token always ends between the characters `left` and `right`, and both
  /// sides are split independently. Returns false if this is not certain.
  bool parts(std::uint32_t left, std::uint32_t right) const;
  /// Returns a cut as Tokenizer::cut does; a pre-token starts at `begin`.
  const char* cut(const char* begin, const char* end) const;
  /// Assumes that a pre-token starts at `begin` (steps only). Returns the last position in (begin,
  /// end) where a pre-token ends regardless of the text after `end`; nullptr if none is certain.
  const char* last_certain_end(const char* begin, const char* end) const;

 private:
  Kind kind_ = Kind::none;
  std::vector<SplitStep> steps_;
};

/// Returns a cut of a text that is split as GPT-2's are; see Tokenizer::cut.
inline const char* gpt2_cut(const char* begin, const char* end) {
  return Split(Split::Kind::gpt2).cut(begin, end);
}

/// Returns the machine for a known regular expression; nothing for any other.
std::optional<Split::Kind> split_kind_of(std::string_view pattern);
/// Returns the pattern of a machine as in a canonical tokenizer.json. It is not defined for none,
/// digits and steps.
std::string_view pattern_of(Split::Kind kind);

}  // namespace text
