#pragma once
// Regular expressions of other people's tokenizers, for which there is no state machine: PCRE2,
// made to read them as Oniguruma does. The only file that knows PCRE2.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace text {

/// The steps that matching may take in one text: some for each byte, so that the time of a whole
/// text grows with its length and no faster. A step is an item of the pattern that is tried, or a
/// byte that it passes over. Matches of few bytes and few steps are not counted.
class MatchBudget {
 public:
  static constexpr std::uint64_t kAtFirst = 10000, kPerByte = 100;

  /// A text of so many bytes is to be matched.
  void add(std::size_t bytes) { left_ += kPerByte * bytes; }
  /// Takes `steps`; false if they are not left.
  bool take(std::uint64_t steps) {
    const bool enough = steps <= left_;
    left_ = enough ? left_ - steps : 0;
    return enough;
  }

 private:
  std::uint64_t left_ = kAtFirst;
};

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
  /// The first match, perhaps an empty one, from `from` on in the text [begin, end); nothing if
  /// there is none. With `certain`, nothing too where bytes that follow `end` might change it.
  /// Throws Error{bad_data} where the steps it takes are more than `budget` has.
  std::optional<Match> find(const char* begin, const char* from, const char* end,
                            MatchBudget& budget, bool certain = false) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace text
