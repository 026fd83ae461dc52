#pragma once
// Reads JSON Lines as other programs write them, including output of Python's json.dump that is
// beyond the standard, and numbers of any magnitude.
// Extracts a member of a JSON object verbatim: its digits, the order of its own members, its
// spaces.

#include "core/json.h"

namespace core {

/// MendedJson is a line that every JSON parser accepts, and the list of what was changed in it.
struct MendedJson {
  std::string text;
  bool numbers = false;  ///< some numbers were too large for a parser and became 9e307
  std::vector<std::size_t> surrogates;  ///< offsets in `text` of \ufffd that replaces an unpaired
                                        ///< surrogate
  std::string constant;  ///< the first NaN, Infinity or -Infinity, all replaced by null; else empty
  std::string not_utf8;  ///< what_is_not_utf8() for the first byte that became U+FFFD; else empty

  /// Returns true if the line was changed.
  bool any() const {
    return numbers || !surrogates.empty() || !constant.empty() || !not_utf8.empty();
  }
  /// Returns true if numbers were changed and nothing else.
  bool only_numbers() const {
    return numbers && surrogates.empty() && constant.empty() && not_utf8.empty();
  }
};
/// Makes a line acceptable to every JSON parser and records the changes. `infinite`: Infinity is a
/// number that is too large.
MendedJson mend_json(std::string_view line, bool infinite = false);

/// Returns true if the value of the member `key` holds an unpaired surrogate.
bool has_surrogate(const MendedJson& mended, std::string_view key);
/// Explains, as a clause for messages, why an unpaired surrogate in `key` is not text.
std::string why_no_surrogate(std::string_view key);
/// Explains, as a clause for messages, why NaN and Infinity are not JSON.
std::string why_no_constant(std::string_view constant);

/// Returns true if a path ends in .jsonl or .ndjson, optionally followed by .zst, .gz, .xz or .bz2.
bool is_named_json_lines(std::string_view path);

/// Parses one line of a file as parse_json() does, with two differences: a number may have any
/// magnitude (one beyond double's range becomes 9e307), and a member that is not in `used` may hold
/// unpaired surrogates (they become U+FFFD). Throws Error{bad_data} with a text that says what is
/// wrong, also for NaN and for unpaired surrogates in a member of `used`.
Json parse_json_line(std::string_view line, const std::string& origin,
    const std::vector<std::string_view>& used = {});

/// A MemberPlace is the byte range [begin, end) of a member's value in the object's text.
struct MemberPlace {
  std::size_t begin, end;
};
/// Finds the value of the member `key` in an object that parse_json() accepts. If the name occurs
/// more than once, the last member wins. Returns nothing if there is none.
std::optional<MemberPlace> member_place(std::string_view object, std::string_view key);

/// Returns the text of the member `key` in an object that parse_json_line() accepts. If the name
/// occurs more than once, the last member wins. Returns nothing if there is none.
std::optional<std::string> member_text(std::string_view object, std::string_view key);

/// Returns the text of an object with one more member in front of its others.
std::string with_member(std::string_view key, std::string_view value, std::string_view object);

}  // namespace core
