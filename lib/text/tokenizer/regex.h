#pragma once
// Runs the regular expressions of tokenizers that have no state machine here, by PCRE2 configured
// to match as Oniguruma does.
// Runs patterns of Python's module re on names, by PCRE2.

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

/// A PythonRegex is a compiled pattern with the meaning that Python 3.11 gives it for a name of
/// ASCII characters without line breaks. Not thread safe.
class PythonRegex {
 public:
  enum class Range { start, whole };  ///< re.match, re.fullmatch
  /// Compiles a pattern. Throws Error{bad_data} for a pattern that Python or PCRE2 refuses, and for
  /// syntax that PCRE2 reads in another way than Python.
  PythonRegex(const std::string& pattern, Range range);

  /// Returns the part of `name` that the pattern matches, or of its group "idx" if it has one;
  /// nothing if it does not match. Subtracts the steps of matching, 100 or more, from `steps`.
  /// Throws Error{bad_data} if matching needs more.
  std::optional<std::string_view> find(std::string_view name, std::int64_t& steps) const;
  bool matches(std::string_view name, std::int64_t& steps) const {
    return find(name, steps).has_value();
  }

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace text
