#include "text/tokenizer/utf8.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <simdjson.h>
#include <utf8proc.h>

#include <atomic>

namespace text {
namespace {

constexpr std::uint32_t kBlock = 4096, kBlocks = 0x110000 / kBlock;

// The numbers of utf8proc's categories: 1 to 3 are letters in upper, lower and title case, 4 and 5
// other letters, 6 to 8 marks, 9 to 11 numbers.
utf8proc_category_t category(std::uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

CharClass look_up(std::uint32_t code_point) {
  static constexpr std::uint32_t kSpaces[] = {
      0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  if (core::contains(kSpaces, code_point)) return CharClass::space;
  if (code_point >= 0x2000 && code_point <= 0x200A) return CharClass::space;
  if (code_point < 128) return kAsciiClass[code_point];
  const auto of = category(code_point);
  if (of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_LO) return CharClass::letter;
  if (of >= UTF8PROC_CATEGORY_ND && of <= UTF8PROC_CATEGORY_NO) return CharClass::number;
  return CharClass::other;
}

LetterKind look_up_letter(std::uint32_t code_point) {
  const auto of = category(code_point);
  if (of == UTF8PROC_CATEGORY_LL) return LetterKind::lower;
  if (of == UTF8PROC_CATEGORY_LU || of == UTF8PROC_CATEGORY_LT) return LetterKind::upper;
  if (of >= UTF8PROC_CATEGORY_LM && of <= UTF8PROC_CATEGORY_ME) return LetterKind::either;
  return LetterKind::none;
}

// A class and a letter's kind in one byte.
std::uint8_t look_up_both(std::uint32_t code_point) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(look_up(code_point)) |
                                   static_cast<unsigned>(look_up_letter(code_point)) << 2);
}

// Classes of 4,096 code points each, computed on first use. A text needs a few blocks, and starting
// a program must not cost all 272. They are never freed.
using Block = std::array<std::uint8_t, kBlock>;
std::atomic<const Block*> g_blocks[kBlocks];

const Block* fill_block(std::uint32_t number) {
  auto block = std::make_unique<Block>();
  for (std::uint32_t i = 0; i < kBlock; ++i) (*block)[i] = look_up_both(number * kBlock + i);
  const Block* expected = nullptr;
  if (g_blocks[number].compare_exchange_strong(expected, block.get())) return block.release();
  return expected;
}

std::uint8_t both_of(std::uint32_t code_point) {
  const std::uint32_t number = code_point / kBlock;
  const Block* block = g_blocks[number].load(std::memory_order_acquire);
  if (block == nullptr) block = fill_block(number);
  return (*block)[code_point % kBlock];
}

constexpr CharClass L = CharClass::letter, N = CharClass::number, S = CharClass::space,
                    O = CharClass::other;

}  // namespace

const CharClass kAsciiClass[128] = {O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, O, O, O, O, O,
    O, O, O, O, O, O, O, O, O, O, O, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N,
    N, N, N, N, N, O, O, O, O, O, O, O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, O, O, O, O, O, O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, O, O, O, O, O};

CharClass class_of(std::uint32_t code_point) {
  if (code_point > 0x10FFFF) return CharClass::other;
  return static_cast<CharClass>(both_of(code_point) & 3);
}

const char* skip_unicode_space(const char* p, const char* end) {
  while (p < end) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) != CharClass::space) return p;
    p += c.bytes;
  }
  return p;
}

LetterKind letter_kind_of(std::uint32_t code_point) {
  if (code_point > 0x10FFFF) return LetterKind::none;
  return static_cast<LetterKind>(both_of(code_point) >> 2);
}

bool is_decimal(std::uint32_t code_point) {
  return code_point <= 0x10FFFF && category(code_point) == UTF8PROC_CATEGORY_ND;
}

bool is_word_char(std::uint32_t code_point) {
  if (code_point > 0x10FFFF) return false;
  if (letter_kind_of(code_point) != LetterKind::none) return true;
  const auto of = category(code_point);
  if (of == UTF8PROC_CATEGORY_ND || of == UTF8PROC_CATEGORY_NL || of == UTF8PROC_CATEGORY_PC)
    return true;
  // Join controls, and alphabetic symbols.
  return code_point == 0x200C || code_point == 0x200D ||
         (code_point >= 0x24B6 && code_point <= 0x24E9) ||
         (code_point >= 0x1F130 && code_point <= 0x1F149) ||
         (code_point >= 0x1F150 && code_point <= 0x1F169) ||
         (code_point >= 0x1F170 && code_point <= 0x1F189);
}

bool is_valid_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

void append_char(std::string& out, std::uint32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

std::uint64_t count_words(std::string_view piece, bool& in_word) {
  std::uint64_t words = 0, before = in_word ? 1 : 0;
  std::size_t i = 0;
  const auto add = [&](std::uint64_t bits, int n) {
    // A word starts at each set bit whose lower neighbour is clear.
    words += static_cast<std::uint64_t>(std::popcount(bits & ~(bits << 1 | before)));
    before = bits >> (n - 1) & 1;
  };
#ifdef __AVX2__
  const __m256i space = _mm256_set1_epi8(' '), low = _mm256_set1_epi8(8),
                high = _mm256_set1_epi8(14);
  for (; i + 32 <= piece.size(); i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece.data() + i));
    const __m256i control = _mm256_and_si256(_mm256_cmpgt_epi8(v, low), _mm256_cmpgt_epi8(high, v));
    const __m256i white = _mm256_or_si256(_mm256_cmpeq_epi8(v, space), control);
    add(static_cast<std::uint32_t>(~_mm256_movemask_epi8(white)), 32);
  }
#endif
  for (; i < piece.size(); ++i) {
    const auto c = static_cast<unsigned char>(piece[i]);
    add(c == ' ' || (c >= 9 && c <= 13) ? 0 : 1, 1);
  }
  in_word = before != 0;
  return words;
}

}  // namespace text
