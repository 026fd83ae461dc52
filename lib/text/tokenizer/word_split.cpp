#ifdef __SSE2__
#endif

#include "text/tokenizer/gpt2_split.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

const char* cap_of(const char* p, const char* end) {
  return end - p > static_cast<std::ptrdiff_t>(kMaxPretokenBytes) ? p + kMaxPretokenBytes : end;
}

}  // namespace

const char* plain_word_end(const char* p, const char* end) {
  const char* const cap = cap_of(p, end);
#ifdef __SSE2__
  const __m128i space = _mm_set1_epi8(' '), newline = _mm_set1_epi8('\n');
  while (cap - p >= 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto stops = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(v, newline))));
    if (stops) return p + std::countr_zero(stops);
    p += 16;
  }
#endif
  while (p < cap && *p != ' ' && *p != '\n') ++p;
  return p;
}

const char* plain_word_cut(const char* begin, const char* end) {
  for (const char* p = end; p > begin; --p)
    if (p[-1] == ' ' || p[-1] == '\n') return p;
  const char* cap = cap_of(begin, end);
  return cap < end ? cap : nullptr;
}

const char* unicode_word_end(const char* p, const char* end) {
  const char* const cap = cap_of(p, end);
  while (p < cap) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) == CharClass::space) return p;
    p += c.bytes;
  }
  return p;
}

const char* skip_unicode_space(const char* p, const char* end) {
  while (p < end) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) != CharClass::space) return p;
    p += c.bytes;
  }
  return p;
}

const char* unicode_word_cut(const char* begin, const char* end) {
  // ASCII white space always ends a character; other white space is found too, but only whole.
  for (const char* p = end; p > begin; p = previous_char(begin, p)) {
    const char* before = previous_char(begin, p);
    if (class_of(decode_char(before, p).code_point) == CharClass::space) return p;
  }
  const char* const limit = end - std::min<std::ptrdiff_t>(4, end - begin);
  const char* found = unicode_word_end(begin, end);
  return found < limit ? found : nullptr;
}

}  // namespace text
