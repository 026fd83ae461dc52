#pragma once
// Regular expressions of other people's tokenizers, for which there is no state machine: PCRE2, made
// to read them as Oniguruma does. The only file that knows PCRE2.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace text {

/// Const calls are thread safe. What is not UTF-8 matches nothing.
class Regex {
 public:
  /// Throws Error{bad_data} for a pattern that PCRE2 does not take, or one that looks behind: where
  /// a text is cut would change what it matches.
  explicit Regex(const std::string& pattern);

  struct Match {
    const char* begin;
    const char* end;
  };
  /// The first match, not empty, from `from` on in the text [begin, end); nothing if there is none.
  /// With `certain`, nothing too where bytes that follow `end` might change it. Throws
  /// Error{bad_data} if it takes too long.
  std::optional<Match> find(const char* begin, const char* from, const char* end,
                            bool certain = false) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace text
