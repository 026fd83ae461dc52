#pragma once
// How a text is split into pre-tokens: one of the state machines, or steps one after the other,
// each splitting the pieces of the one before.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/digit_groups.h"
#include "text/tokenizer/regex.h"

namespace text {

/// One step of a general split.
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

class Split {
 public:
  enum class Kind : std::uint8_t {
    none,         ///< the whole text is one
    gpt2,         ///< gpt2_split.h
    llama3,       ///< cl100k_split.h with k = 3
    qwen2,        ///< with k = 1
    o200k,        ///< k = 3, contractions
    tekken,       ///< k = 1, none
    digits_gpt2,  ///< each number alone, else GPT-2's
    runs_gpt2,    ///< numbers, else GPT-2's
    steps,
  };

  Split() = default;
  explicit Split(Kind kind) : kind_(kind) {}
  explicit Split(std::vector<SplitStep> steps) : kind_(Kind::steps), steps_(std::move(steps)) {}

  Kind kind() const { return kind_; }
  const std::vector<SplitStep>& steps() const { return steps_; }

  /// The end of the pre-token that starts at p < end (not of steps); `end` ends the text.
  const char* pretoken_end(const char* p, const char* end) const;
  /// The pre-tokens of a whole text, one after the other (steps only). Throws Error{bad_data} where
  /// a pattern takes more steps than `budget` has and what this text adds to it.
  void split(std::string_view text, std::vector<std::string_view>& out, MatchBudget& budget) const;

  /// True if a pre-token always ends between `left` and `right`, the characters around a place, and
  /// both sides split as if they stood alone. False says nothing.
  bool parts(std::uint32_t left, std::uint32_t right) const;
  /// See Tokenizer::cut; one of the pre-tokens starts at `begin`.
  const char* cut(const char* begin, const char* end) const;
  /// Steps only: the last place in (begin, end) where a pre-token ends whatever follows `end`, if
  /// one starts at `begin`; nullptr if none is certain.
  const char* last_certain_end(const char* begin, const char* end) const;

 private:
  Kind kind_ = Kind::none;
  std::vector<SplitStep> steps_;
};

/// The machine for a regular expression that is known; nothing for another.
std::optional<Split::Kind> split_kind_of(std::string_view pattern);
/// The pattern of a machine, as a canonical tokenizer.json has it; not of none, digits and steps.
std::string_view pattern_of(Split::Kind kind);

}  // namespace text
