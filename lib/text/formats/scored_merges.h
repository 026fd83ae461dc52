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
/// There are at most kPairsOfToken * tokens + kMorePairs pairs, so memory is linear in the tokens.
/// Tokens of at most 16 characters, which SentencePiece trains by default, have no more; in models
/// of languages a token has two.
inline constexpr std::size_t kPairsOfToken = 16, kMorePairs = 65536;

/// Returns the pairs of tokens whose concatenation is a token, ordered by that token's score, best
/// first; pairs of one token, by the length of the first. Only tokens with `merges` are split into
/// pairs; any token may be a part. `origin` names the file. Throws Error{bad_data} for a score that
/// is not a number, a token longer than kLongestScored and too many pairs.
std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin);

}  // namespace text
