#pragma once
// JSON as strangers write it, a line a document: what Python's json.dump writes beyond the
// standard, and numbers of any size.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace core {

/// A line in which every parser finds what is in it, and what it took to make it so.
struct MendedJson {
  std::string text;
  bool numbers = false;                 ///< some were too large for a parser and are 9e307
  std::vector<std::size_t> surrogates;  ///< where in `text` \ufffd is for half a surrogate pair
  std::string constant;  ///< the first NaN, Infinity or -Infinity, which are null; else empty
  std::string not_utf8;  ///< what_is_not_utf8() of the first byte replaced by U+FFFD; else empty

  /// The line is not what it was.
  bool any() const {
    return numbers || !surrogates.empty() || !constant.empty() || !not_utf8.empty();
  }
};
MendedJson mend_json(std::string_view line);

/// Half a surrogate pair is in the value of the member `key`.
bool has_surrogate(const MendedJson& mended, std::string_view key);
/// Why half a surrogate pair in `key` is no text: a clause for messages.
std::string why_no_surrogate(std::string_view key);
/// Why NaN and Infinity are no JSON: a clause for messages.
std::string why_no_constant(std::string_view constant);

/// A path ends in .jsonl or .ndjson, with .zst, .gz, .xz or .bz2 behind it or not.
bool is_named_json_lines(std::string_view path);

/// parse_json() of one line of a file: numbers may have any size (one that no double holds is
/// 9e307), and members that are not in `used` may have half surrogate pairs (U+FFFD). Throws
/// Error{bad_data}, for these in `used` and for NaN too, in words that say what it is.
Json parse_json_line(std::string_view line, const std::string& origin,
                     const std::vector<std::string_view>& used = {});

}  // namespace core
