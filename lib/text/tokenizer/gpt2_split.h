#pragma once
// GPT-2's pre-tokenizer (Radford et al. 2019, encoder.py), as a state machine instead of a regular
// expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is not UTF-8 is a character of class other ([^\s\p{L}\p{N}]).
// The pre-tokenizers that followed GPT-2's, as state machines instead of regular expressions.
//
// cl100k's family, Llama-3 with k = 3 and Qwen 2 with k = 1:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
//
// o200k's, with k = 3 and contractions, and Tekken's (Mistral Nemo), with k = 1 and without
// contractions. U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], D is [\p{Ll}\p{Lm}\p{Lo}\p{M}], c is
// (?i:'s|'t|...)?:
//
//   [^\r\n\p{L}\p{N}]?U*D+c|[^\r\n\p{L}\p{N}]?U+D*c|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n/]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
//
// Digits before GPT-2's pattern: numbers are isolated first (Digits), and the text between them is
// split by GPT-2's pattern.
//
// A byte that is not UTF-8 is a character of class other. A pre-token ends no later than the first
// character boundary from kMaxPretokenBytes on.

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/base.h"

namespace text {

/// A pre-token ends at the first character boundary at or after this many bytes, and matching
/// restarts there. The limit bounds the memory of merging, which holds a whole pre-token. Real text
/// has no such words.
inline constexpr std::size_t kMaxPretokenBytes = std::size_t{4} << 20;

/// Returns p + kMaxPretokenBytes, or `end` if the text ends before.
inline const char* cap_of(const char* p, const char* end) {
  return end - p > static_cast<std::ptrdiff_t>(kMaxPretokenBytes) ? p + kMaxPretokenBytes : end;
}

#ifdef __SSE2__
/// Returns a bit mask of the ASCII letters among 16 bytes.
inline unsigned ascii_letters(__m128i bytes) {
  const __m128i moved = _mm_add_epi8(
      _mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8(static_cast<char>(-'a' - 128)));
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(26 - 128)))));
}

/// Loads 16 bytes from any address.
inline __m128i sixteen_bytes(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
#endif

/// Returns the end of the 1 to 15 ASCII letters at `word` if the byte after them is ASCII too;
/// nullptr otherwise, and always without SSE2. 16 bytes from `word` on are readable.
inline const char* short_word_end([[maybe_unused]] const char* word) {
#ifdef __SSE2__
  const int n = std::countr_one(ascii_letters(sixteen_bytes(word)));
  if (n > 0 && n < 16 && word[n] >= 0) return word + n;
#endif
  return nullptr;
}

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
  const char* const found = end - p >= 17 ? short_word_end(p + (*p == ' ')) : nullptr;
  return found != nullptr ? found : gpt2_pretoken_end(p, end);
}

/// Returns true if `found`, an end that gpt2_pretoken_end() returned, does not depend on the text
/// after `end`.
inline bool gpt2_is_certain(const char* found, const char* end) { return end - found >= 8; }

/// Return the end of the pre-token that starts at p < end, where `end` is the end of the text.
/// k_digits is 1 or 3.
const char* cl100k_pretoken_end(const char* p, const char* end, int k_digits);
const char* o200k_pretoken_end(const char* p, const char* end, int k_digits, bool contractions);
/// Returns the end of the pre-token at p. Each digit is a pre-token or, with `runs`, each run of
/// digits.
const char* digits_gpt2_pretoken_end(const char* p, const char* end, bool runs);

/// Returns true for ASCII that may precede the letters of a word: all but letters, digits, \r, \n
/// and the apostrophe, which may begin a contraction.
inline bool may_lead_word(unsigned char c) {
  constexpr std::uint64_t kNot = 0x03FF008000002400u;  // of the first 64: \n \r ' 0-9
  return c < 64 ? !(kNot >> c & 1) : c < 128 && static_cast<unsigned char>((c | 0x20) - 'a') >= 26;
}

/// Behave like the functions above; the common case, an ASCII word with or without a leading
/// character, is inlined.
template <int kDigits>
inline const char* cl100k_pretoken_end_quick(const char* p, const char* end) {
  const char* const found =
      end - p >= 17 ? short_word_end(p + may_lead_word(static_cast<unsigned char>(*p))) : nullptr;
  return found != nullptr ? found : cl100k_pretoken_end(p, end, kDigits);
}

template <int kDigits, bool kContractions>
inline const char* o200k_pretoken_end_quick(const char* p, const char* end) {
#ifdef __SSE2__
  if (end - p >= 17) {
    const char* const word = p + (may_lead_word(static_cast<unsigned char>(*p)) || *p == '\'');
    const __m128i bytes = sixteen_bytes(word);
    const unsigned letters = ascii_letters(bytes);
    const int n = std::countr_one(letters);
    if (n > 0 && n < 16 && word[n] >= 0 && word[n] != '\'') {
      // Bit 5 of an ASCII letter is set for lower case.
      const auto small = static_cast<unsigned>(_mm_movemask_epi8(_mm_slli_epi16(bytes, 2)));
      const unsigned capitals = letters & ~small;
      const int large = std::countr_one(capitals);
      const int then = std::countr_one((letters & small) >> large);
      return word + large + then;
    }
  }
#endif
  return o200k_pretoken_end(p, end, kDigits, kContractions);
}

}  // namespace text
