#pragma once
// Sorts the suffixes of a text of tokens by libdivsufsort on the bytes of the tokens, most
// significant byte first, so that bytes compare as tokens do.

#include "core/base.h"

namespace ngrams {

/// Returns the bytes per token for tokens of [0, types): 1 to 4.
std::size_t sort_width(std::uint64_t types);
/// Returns the memory in bytes per token that sort_suffixes() needs besides the text.
std::size_t sort_bytes_per_token(std::uint64_t types);
/// Returns the longest text, in tokens, that can be sorted.
std::uint64_t most_sorted(std::uint64_t types);

/// Appends a token to a text for sort_suffixes().
inline void put_token(std::vector<std::byte>& text, std::uint32_t token, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) text.push_back(static_cast<std::byte>(token >> (8 * i)));
}
/// Returns the token at a position of such a text.
inline std::uint32_t token_at(
    std::span<const std::byte> text, std::size_t place, std::size_t width) {
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < width; ++i)
    token = token << 8 | std::to_integer<std::uint32_t>(text[place * width + i]);
  return token;
}

/// Returns the positions [0, own) of the text (made by put_token()) whose token is not `mark`,
/// sorted by the suffixes that begin there. Throws Error{out_of_memory}.
std::vector<std::uint32_t> sort_suffixes(
    std::span<const std::byte> text, std::size_t width, std::uint64_t own, std::uint32_t mark);

}  // namespace ngrams
