#pragma once
// Runs the regular expressions of tokenizers that have no state machine here, by PCRE2 configured
// to match as Oniguruma does. Only python_regex.h uses PCRE2 too.

#include "core/base.h"

namespace text {

/// A MatchBudget limits the steps of matching a text to a number per byte, so that the time is
/// linear in the length of the text. A step is one attempted item of the pattern or one byte that
/// it skips. Matches of few bytes and few steps are free.
class MatchBudget {
 public:
  static constexpr std::uint64_t kAtFirst = 10000, kPerByte = 100;

  /// Adds the budget of a text of `bytes` bytes.
  void add(std::size_t bytes) { left_ += kPerByte * bytes; }
  /// Takes `steps`; returns false if fewer are left.
  bool take(std::uint64_t steps) {
    const bool enough = steps <= left_;
    left_ = enough ? left_ - steps : 0;
    return enough;
  }

 private:
  std::uint64_t left_ = kAtFirst;
};

/// A Regex is a compiled pattern. Bytes that are not UTF-8 match nothing. Const calls are thread
/// safe.
class Regex {
 public:
  /// Compiles a pattern. Throws Error{bad_data} for a pattern that PCRE2 refuses, and for a
  /// lookbehind, whose matches would depend on where a text is cut.
  explicit Regex(const std::string& pattern);

  struct Match {
    const char* begin;
    const char* end;
  };
  /// Returns the first match, which may be empty, at or after `from` in the text [begin, end);
  /// nothing if there is none. With `certain`, also returns nothing if bytes after `end` might
  /// change the match. Throws Error{bad_data} if matching exceeds `budget`.
  std::optional<Match> find(const char* begin, const char* from, const char* end,
      MatchBudget& budget, bool certain = false) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace text
