#include "text/tokenizer/gpt2_split.h"

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

bool is_ascii_letter(unsigned char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

// Skips ASCII letters, the bulk of most texts, 16 at a time.
const char* skip_ascii_letters(const char* p, const char* end, const char* cap) {
#ifdef __SSE2__
  while (end - p >= 16 && p < cap) {
    const int n = std::countr_one(ascii_letters(sixteen_bytes(p)));
    if (n < 16) return p + n;
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

inline CharClass class_at(const char* p, const char* end) {
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

constexpr std::uint32_t kLongS = 0x17F;  // folds to s

struct Reader {
  const char* end;
  const char* cap;

  Reader(const char* p, const char* stop) : end(stop), cap(cap_of(p, stop)) {}

  bool more(const char* p) const { return p < end && p < cap; }
  Char at(const char* p) const { return decode_char(p, end); }

  template <class Is> const char* run(const char* p, Is is) const {
    while (more(p)) {
      const Char c = at(p);
      if (!is(c.code_point)) return p;
      p += c.bytes;
    }
    return p;
  }
};

inline CharClass class_here(std::uint32_t c) { return c < 128 ? kAsciiClass[c] : class_of(c); }
bool is_newline(std::uint32_t c) { return c == '\r' || c == '\n'; }
bool is_letter(std::uint32_t c) { return class_here(c) == CharClass::letter; }
bool is_other(std::uint32_t c) { return class_here(c) == CharClass::other; }
bool is_space(std::uint32_t c) { return class_here(c) == CharClass::space; }
bool is_number(std::uint32_t c) { return class_here(c) == CharClass::number; }
// U and D of the header.
bool may_be_upper(std::uint32_t c) {
  const LetterKind kind = letter_kind_of(c);
  return kind == LetterKind::upper || kind == LetterKind::either;
}
bool may_be_lower(std::uint32_t c) {
  const LetterKind kind = letter_kind_of(c);
  return kind == LetterKind::lower || kind == LetterKind::either;
}

// Returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at p, or p.
const char* any_case_contraction_end(const char* p, const Reader& text) {
  if (const char* found = contraction_end<true>(p, text.end); found != p) return found;
  if (text.end - p < 2 || *p != '\'') return p;
  const Char c = text.at(p + 1);
  return c.code_point == kLongS ? p + 1 + c.bytes : p;
}

const char* number_end(const char* p, const Reader& text, int k) {
  for (int i = 0; i < k && text.more(p); ++i) {
    const Char c = text.at(p);
    if (!is_number(c.code_point)) break;
    p += c.bytes;
  }
  return p;
}

// Matches `\s*[\r\n]+|\s+(?!\S)|\s+` at white space p.
const char* white_end(const char* p, const Reader& text) {
  const char* newline = nullptr;  // the end of the last one
  const char* q = p;
  while (text.more(q)) {
    const Char c = text.at(q);
    if (!is_space(c.code_point)) break;
    q += c.bytes;
    if (is_newline(c.code_point)) newline = q;
  }
  if (newline != nullptr) return newline;
  if (q == text.end || q >= text.cap) return q;
  const char* const last = previous_char(p, q);
  return last == p ? q : last;
}

// Matches `\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|...white space` at p, which is no letter. `also` is
// a further character of the tail of newlines.
const char* not_word_end(const char* p, Char first, const Reader& text, int k, char also) {
  if (is_number(first.code_point)) return number_end(p, text, k);
  const char* other = first.code_point == ' ' ? p + 1 : p;
  if (other < text.end && is_other(text.at(other).code_point)) {
    other = text.run(other, is_other);
    while (
        text.more(other) && (*other == '\r' || *other == '\n' || (also != '\0' && *other == also)))
      ++other;
    return other;
  }
  return white_end(p, text);
}

// Returns the end of the first match of `U*D+|U+D*` at p, or nullptr. `lower` tells which of the
// two it is.
const char* cased_end(const char* p, const Reader& text, bool lower) {
  const char* upper_end = p;
  const char* last_either = nullptr;  // the end of the last character of U that is of D too
  while (text.more(upper_end)) {
    const Char c = text.at(upper_end);
    if (!may_be_upper(c.code_point)) break;
    upper_end += c.bytes;
    if (may_be_lower(c.code_point)) last_either = upper_end;
  }
  const char* const all = text.run(upper_end, may_be_lower);
  if (lower) return all > upper_end ? all : last_either;
  return upper_end > p ? all : nullptr;
}

}  // namespace

const char* gpt2_pretoken_end(const char* p, const char* end) {
  const char* const cap = cap_of(p, end);
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

const char* cl100k_pretoken_end(const char* p, const char* end, int k_digits) {
  const Reader text(p, end);
  if (const char* found = any_case_contraction_end(p, text); found != p) return found;
  const Char first = text.at(p);
  if (is_letter(first.code_point)) return text.run(p, is_letter);
  if (!is_newline(first.code_point) && !is_number(first.code_point)) {
    const char* const word = p + first.bytes;
    if (word < end && is_letter(text.at(word).code_point)) return text.run(word, is_letter);
  }
  return not_word_end(p, first, text, k_digits, '\0');
}

const char* o200k_pretoken_end(const char* p, const char* end, int k_digits, bool contractions) {
  const Reader text(p, end);
  const Char first = text.at(p);
  const CharClass kind = class_here(first.code_point);
  const bool leads =
      kind != CharClass::letter && kind != CharClass::number && !is_newline(first.code_point);
  for (const bool lower : {true, false}) {
    const char* found =
        leads && p + first.bytes < end ? cased_end(p + first.bytes, text, lower) : nullptr;
    if (found == nullptr) found = cased_end(p, text, lower);
    if (found != nullptr) return contractions ? any_case_contraction_end(found, text) : found;
  }
  return not_word_end(p, first, text, k_digits, '/');
}

const char* digits_gpt2_pretoken_end(const char* p, const char* end, bool runs) {
  const Reader text(p, end);
  const Char first = text.at(p);
  if (is_number(first.code_point)) return runs ? text.run(p, is_number) : p + first.bytes;
  if (is_space(first.code_point)) {
    // Text before a number ends there, so its white space stays together.
    const char* const stop = text.run(p, is_space);
    if (stop < end && is_number(text.at(stop).code_point)) return stop;
  }
  return gpt2_pretoken_end(p, end);
}

}  // namespace text
