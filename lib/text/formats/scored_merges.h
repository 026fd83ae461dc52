#pragma once
// Derives the merges of SentencePiece's byte-pair encoding from the scores of its tokens.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace text {

/// The longest token in bytes. Each position in a token may be a merge, so the limit bounds time
/// and memory.
inline constexpr std::size_t kLongestScored = 256;

/// Returns the pairs of tokens whose concatenation is a token, ordered by that token's score, best
/// first; pairs of one token are ordered by their ids. Only tokens with `merges` are split into
/// pairs; any token may be a part. `origin` names the file. Throws Error{bad_data} for a score that
/// is not a number and for a token longer than kLongestScored.
std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin);

}  // namespace text
