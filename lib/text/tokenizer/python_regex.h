#pragma once
// Runs patterns of Python's module re on names, by PCRE2.

#include "core/base.h"

namespace text {

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
