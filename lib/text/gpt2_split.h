#pragma once
// GPT-2's pre-tokenizer (Radford et al. 2019, encoder.py), as a state machine instead of a regular
// expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is not UTF-8 is a character of class other ([^\s\p{L}\p{N}]).

#include <cstddef>

namespace text {

/// A pre-token ends at the first character border at or after this many bytes, and the pattern
/// starts afresh there: the merges of one pre-token are done in memory. No text has such words.
inline constexpr std::size_t kMaxPretokenBytes = std::size_t{4} << 20;

/// The end of the pre-token that starts at p < end, where `end` is the end of the text.
const char* gpt2_pretoken_end(const char* p, const char* end);

/// True if a pre-token that gpt2_pretoken_end() found to end at `found` ends there whatever text
/// follows `end`.
inline bool gpt2_is_certain(const char* found, const char* end) { return end - found >= 8; }

/// The last position in (begin, end) where a pre-token starts whatever stands before `begin` and
/// after `end`, and where the text before it splits as if it ended there; nullptr if there is none.
/// `begin` must be the start of a pre-token.
const char* gpt2_last_cut(const char* begin, const char* end);

}  // namespace text
