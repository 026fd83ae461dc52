#pragma once
// GPT-2's pre-tokenizer (Radford et al. 2019, encoder.py), as a state machine instead of a regular
// expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is not UTF-8 is a character of class other ([^\s\p{L}\p{N}]).

#include <bit>
#include <cstddef>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace text {

/// A pre-token ends at the first character border at or after this many bytes, and the pattern
/// starts afresh there: the merges of one pre-token are done in memory. No text has such words.
inline constexpr std::size_t kMaxPretokenBytes = std::size_t{4} << 20;

/// The end of one of 's 't 'm 'd 're 've 'll at p, or p if there is none; with kAnyCase of ASCII
/// letters of either case.
template <bool kAnyCase>
inline const char* contraction_end(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return p;
  const auto letter = [&](int i) {
    return end - p > i ? static_cast<unsigned char>(p[i]) | (kAnyCase ? 0x20u : 0u) : 0u;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? p + 3 : p;
    case 'l':
      return letter(2) == 'l' ? p + 3 : p;
    default:
      return p;
  }
}

/// The end of the pre-token that starts at p < end, where `end` is the end of the text.
const char* gpt2_pretoken_end(const char* p, const char* end);

/// The same, with the common case, an ASCII word with or without a space before it, in line.
inline const char* gpt2_pretoken_end_quick(const char* p, const char* end) {
#ifdef __SSE2__
  if (end - p >= 17) {
    const char* const word = p + (*p == ' ');
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(word));
    const __m128i moved = _mm_add_epi8(_mm_or_si128(v, _mm_set1_epi8(0x20)),
                                       _mm_set1_epi8(static_cast<char>(-'a' - 128)));
    const __m128i letters = _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(26 - 128)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(letters));
    const int n = std::countr_one(mask);
    if (n > 0 && n < 16 && word[n] >= 0) return word + n;
  }
#endif
  return gpt2_pretoken_end(p, end);
}

/// True if a pre-token that gpt2_pretoken_end() found to end at `found` ends there whatever text
/// follows `end`.
inline bool gpt2_is_certain(const char* found, const char* end) { return end - found >= 8; }

/// A position where the text may be cut; see Tokenizer::cut.
const char* gpt2_cut(const char* begin, const char* end);

/// The last position in (begin, end) where a pre-token starts whatever stands before `begin` and
/// after `end`, and where the text before it splits as if it ended there; nullptr if there is none.
/// `begin` must be the start of a pre-token.
const char* gpt2_last_cut(const char* begin, const char* end);

}  // namespace text
