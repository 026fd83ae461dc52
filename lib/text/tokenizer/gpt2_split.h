#pragma once
// GPT-2's pre-tokenizer (Radford et al. 2019, encoder.py), as a state machine instead of a regular
// expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is not UTF-8 is a character of class other ([^\s\p{L}\p{N}]).

#ifdef __SSE2__
#include <emmintrin.h>

#include "core/base.h"
#endif

namespace text {

/// A pre-token ends at the first character boundary at or after this many bytes, and matching
/// restarts there. The limit bounds the memory of merging, which holds a whole pre-token. Real text
/// has no such words.
inline constexpr std::size_t kMaxPretokenBytes = std::size_t{4} << 20;

/// Returns the end of one of 's 't 'm 'd 're 've 'll at p, or p if there is none. kAnyCase ignores
/// the case of ASCII letters.
template <bool kAnyCase> inline const char* contraction_end(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return p;
  const auto letter = [&](int i) {
    return end - p > i ? static_cast<unsigned char>(p[i]) | (kAnyCase ? 0x20u : 0u) : 0u;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return p + 2;
    case 'r':
    case 'v': return letter(2) == 'e' ? p + 3 : p;
    case 'l': return letter(2) == 'l' ? p + 3 : p;
    default: return p;
  }
}

/// Returns the end of the pre-token that starts at p < end, where `end` is the end of the text.
const char* gpt2_pretoken_end(const char* p, const char* end);

/// Behaves like gpt2_pretoken_end(); the common case, an ASCII word with or without a leading
/// space, is inlined.
inline const char* gpt2_pretoken_end_quick(const char* p, const char* end) {
#ifdef __SSE2__
  if (end - p >= 17) {
    const char* const word = p + (*p == ' ');
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(word));
    const __m128i moved = _mm_add_epi8(
        _mm_or_si128(v, _mm_set1_epi8(0x20)), _mm_set1_epi8(static_cast<char>(-'a' - 128)));
    const __m128i letters = _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(26 - 128)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(letters));
    const int n = std::countr_one(mask);
    if (n > 0 && n < 16 && word[n] >= 0) return word + n;
  }
#endif
  return gpt2_pretoken_end(p, end);
}

/// Returns true if `found`, an end that gpt2_pretoken_end() returned, does not depend on the text
/// after `end`.
inline bool gpt2_is_certain(const char* found, const char* end) { return end - found >= 8; }

/// Returns a position where the text may be cut; see Tokenizer::cut.
const char* gpt2_cut(const char* begin, const char* end);

/// Returns the last position in (begin, end) where a pre-token starts regardless of the text before
/// `begin` and after `end`, and where the text before the position is split as if it ended there.
/// Returns nullptr if there is none. `begin` must be the start of a pre-token.
const char* gpt2_last_cut(const char* begin, const char* end);

}  // namespace text
