#pragma once
// SentencePiece's byte-pair encoding: its merges follow from the scores of its tokens.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace text {

/// A merge is looked for at each place in a token: bounds time and memory.
inline constexpr std::size_t kLongestScored = 256;  // bytes

/// The pairs of tokens that are a token together, those of the best token first; of one token by
/// the ids of the pair. Only tokens with `merges` are made of pairs; all may be a part. `origin`
/// names the file. Throws Error{bad_data} for a score that is no number and for a token that is
/// longer than kLongestScored.
std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin);

}  // namespace text
