#include "text/tokenizer/gpt2_split.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

bool is_ascii_letter(unsigned char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

// Skips ASCII letters, the bulk of most texts, 16 at a time.
const char* skip_ascii_letters(const char* p, const char* end, const char* cap) {
#ifdef __SSE2__
  const __m128i lower = _mm_set1_epi8(0x20), shift = _mm_set1_epi8(static_cast<char>(-'a' - 128)),
                limit = _mm_set1_epi8(static_cast<char>(26 - 128));
  while (end - p >= 16 && p < cap) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i moved = _mm_add_epi8(_mm_or_si128(v, lower), shift);
    const unsigned stops =
        ~static_cast<unsigned>(_mm_movemask_epi8(_mm_cmplt_epi8(moved, limit))) & 0xFFFFu;
    if (stops) return p + std::countr_zero(stops);
    p += 16;
  }
#endif
  while (p < end && p < cap && is_ascii_letter(static_cast<unsigned char>(*p))) ++p;
  return p;
}

// Returns the end of the run of one class from p on, at the latest the first border from cap on.
template <CharClass kClass> const char* run_end(const char* p, const char* end, const char* cap) {
  while (p < end && p < cap) {
    const auto c = static_cast<unsigned char>(*p);
    if (c < 128) {
      if (kAsciiClass[c] != kClass) return p;
      if constexpr (kClass == CharClass::letter) {
        // Bytes skipped at once are ASCII, so a border lies at the cap itself.
        p = skip_ascii_letters(p, end, cap);
        if (p > cap) return cap;
      } else {
        ++p;
      }
    } else {
      const Char next = decode_char(p, end);
      if (class_of(next.code_point) != kClass) return p;
      p += next.bytes;
    }
  }
  return p;
}

const char* run_of(CharClass kind, const char* p, const char* end, const char* cap) {
  switch (kind) {
    case CharClass::letter: return run_end<CharClass::letter>(p, end, cap);
    case CharClass::number: return run_end<CharClass::number>(p, end, cap);
    default: return run_end<CharClass::other>(p, end, cap);
  }
}

CharClass class_at(const char* p, const char* end) {
  const auto c = static_cast<unsigned char>(*p);
  return c < 128 ? kAsciiClass[c] : class_of(decode_char(p, end).code_point);
}

// Returns the end of white space at p that belongs to no word. \s+(?!\S) leaves the last space to
// the following text, if there is any. A single space is a piece of its own.
const char* space_end(const char* p, const char* end, const char* cap) {
  const char* q = run_end<CharClass::space>(p, end, cap);
  if (q == end || q >= cap) return q;
  const char* last = previous_char(p, q);
  return last == p ? q : last;
}

}  // namespace

const char* gpt2_pretoken_end(const char* p, const char* end) {
  const char* cap =
      end - p > static_cast<std::ptrdiff_t>(kMaxPretokenBytes) ? p + kMaxPretokenBytes : end;
  const char* word = p;
  if (*p == ' ') {
    if (++word == end) return end;
    const CharClass next = class_at(word, end);
    return next == CharClass::space ? space_end(p, end, cap) : run_of(next, word, end, cap);
  }
  if (const char* found = contraction_end<false>(p, end); found != p) return found;
  const CharClass first = class_at(p, end);
  return first == CharClass::space ? space_end(p, end, cap) : run_of(first, p, end, cap);
}

const char* gpt2_last_cut(const char* begin, const char* end) {
  // The class of the last characters may depend on later bytes, so they are excluded.
  if (end - begin < 8) return nullptr;
  const char* p = end - 4;
  while (p > begin && (static_cast<unsigned char>(*p) & 0xC0) == 0x80) --p;
  if (p <= begin) return nullptr;
  CharClass right = class_at(p, end);
  while (p > begin) {
    const char* before = previous_char(begin, p);
    const CharClass left = class_at(before, p);
    // A space may belong to the next word. A contraction extends from ' into letters.
    if (left != right && left != CharClass::space &&
        !(right == CharClass::letter && *before == '\''))
      return p;
    p = before;
    right = left;
  }
  return nullptr;
}

const char* gpt2_cut(const char* begin, const char* end) {
  if (const char* found = gpt2_last_cut(begin, end)) return found;
  if (end - begin <= static_cast<std::ptrdiff_t>(kMaxPretokenBytes)) return nullptr;
  const char* found = gpt2_pretoken_end(begin, end);
  return gpt2_is_certain(found, end) ? found : nullptr;
}

}  // namespace text
