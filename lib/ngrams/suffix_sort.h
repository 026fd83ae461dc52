#pragma once
// The suffixes of a text of tokens in order: libdivsufsort on the bytes of the tokens, the highest
// first, so that bytes compare as tokens do.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ngrams {

/// Bytes that a token of [0, types) takes there: 1 to 4.
std::size_t sort_width(std::uint64_t types);
/// Bytes of memory for each token of the text that sort_suffixes() needs beside the text's own.
std::size_t sort_bytes_per_token(std::uint64_t types);
/// The longest text that can be sorted, in tokens.
std::uint64_t most_sorted(std::uint64_t types);

/// Puts a token behind a text for sort_suffixes().
inline void put_token(std::vector<std::byte>& text, std::uint32_t token, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) text.push_back(static_cast<std::byte>(token >> (8 * i)));
}
/// The token at a place of such a text.
inline std::uint32_t token_at(std::span<const std::byte> text, std::size_t place,
                              std::size_t width) {
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < width; ++i)
    token = token << 8 | std::to_integer<std::uint32_t>(text[place * width + i]);
  return token;
}

/// Places [0, own) of the text (as put_token() makes it) at which no token `mark` stands, ascending
/// by what the text has from there to its end. Throws Error{out_of_memory}.
std::vector<std::uint32_t> sort_suffixes(std::span<const std::byte> text, std::size_t width,
                                         std::uint64_t own, std::uint32_t mark);

}  // namespace ngrams
