#include "passages/analysis.h"

#include <libstemmer.h>
#include <utf8proc.h>

#include <new>

#include "text/tokenizer/utf8.h"

namespace passages {
namespace {

constexpr std::uint32_t kStopped = 0xFFFFFFFF;            // a word that is no term
constexpr std::size_t kWordsKept = std::size_t{1} << 20;  // bounds the memory of cached words

constexpr std::size_t kNotStemmed = 2;  // characters; as in Porter's program, else "s" would be ""

constexpr std::string_view kStopWords[] = {"a", "an", "and", "are", "as", "at", "be", "but", "by",
    "for", "if", "in", "into", "is", "it", "no", "not", "of", "on", "or", "such", "that", "the",
    "their", "then", "there", "these", "they", "this", "to", "was", "will", "with"};

enum class Part : std::uint8_t { none, letter, number, mark, connector, alone };

Part part_of_any(std::uint32_t c) {
  if (c == core::Char::kInvalid) return Part::none;
  const bool ideograph = (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
                         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
  const bool hiragana = c >= 0x3041 && c <= 0x309F;
  if (ideograph || hiragana) return Part::alone;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) return Part::mark;
  if (category == UTF8PROC_CATEGORY_PC) return Part::connector;
  const auto kind = text::class_of(c);
  return kind == text::CharClass::letter   ? Part::letter
         : kind == text::CharClass::number ? Part::number
                                           : Part::none;
}

Part part_of(std::uint32_t c) {
  static const auto kAscii = [] {
    std::array<Part, 128> parts{};
    for (std::uint32_t i = 0; i < 128; ++i) parts[i] = part_of_any(i);
    return parts;
  }();
  return c < 128 ? kAscii[c] : part_of_any(c);
}

// Returns true if `c` between two characters of this class does not end a word.
bool joins(std::uint32_t c, Part part) {
  constexpr std::uint32_t kQuote = 0x2019, kMiddleDot = 0xB7;
  if (c == '\'' || c == '.' || c == kQuote) return part == Part::letter || part == Part::number;
  if (c == ':' || c == kMiddleDot) return part == Part::letter;
  if (c == ',' || c == ';') return part == Part::number;
  return false;
}

// Returns the end of the word that starts at p (whose part is no mark). `text_in_it` is set to
// whether it holds more than connectors.
const char* word_end(const char* p, const char* end, bool& text_in_it) {
  core::Char at = core::decode_char(p, end);
  Part before = part_of(at.code_point);
  text_in_it = before != Part::connector;
  p += at.bytes;
  const bool alone = before == Part::alone;
  while (p < end) {
    at = core::decode_char(p, end);
    const Part part = part_of(at.code_point);
    if (part == Part::mark) {
      p += at.bytes;
      continue;
    }
    if (alone || part == Part::alone) return p;
    if (part != Part::none) {
      text_in_it |= part != Part::connector;
      before = part;
      p += at.bytes;
      continue;
    }
    const char* next = p + at.bytes;
    if (next >= end || !joins(at.code_point, before) ||
        part_of(core::decode_char(next, end).code_point) != before)
      return p;
    p = next;
  }
  return p;
}

bool ends_with_possessive(std::string_view word, std::size_t& bytes) {
  if (word.empty() || (word.back() != 's' && word.back() != 'S')) return false;
  word.remove_suffix(1);
  for (const std::string_view quote : {"'", "\xE2\x80\x99"})
    if (word.ends_with(quote)) return bytes = quote.size() + 1, true;
  return false;
}

}  // namespace

Analyzer::Analyzer() : stemmer_(sb_stemmer_new("porter", "UTF_8"), sb_stemmer_delete) {
  if (!stemmer_)
    core::fail(core::Code::unavailable, "libstemmer has no 'porter' here; install libstemmer");
}

Analyzer::~Analyzer() = default;

void Analyzer::analyze(std::string_view text, std::vector<std::uint32_t>& terms,
    std::vector<std::string_view>* words) {
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    const core::Char at = core::decode_char(p, end);
    const Part part = part_of(at.code_point);
    if (part == Part::none || part == Part::mark) {
      p += at.bytes;
      continue;
    }
    bool text_in_it = false;
    const char* stop = word_end(p, end, text_in_it);
    if (text_in_it) {
      const std::string_view word(p, static_cast<std::size_t>(stop - p));
      const auto number = term_of(word);
      if (number != kStopped) terms.push_back(number);
      if (number != kStopped && words != nullptr) words->push_back(word);
    }
    p = stop;
  }
}

std::uint32_t Analyzer::term_of(std::string_view word) {
  if (const auto found = words_.find(word); found != words_.end()) return found->second;
  const auto number = look_up(word);
  if (words_.size() >= kWordsKept) words_.clear();
  words_.emplace(word, number);
  return number;
}

std::uint32_t Analyzer::look_up(std::string_view word) {
  std::size_t possessive = 0;
  if (ends_with_possessive(word, possessive)) word.remove_suffix(possessive);
  lower_.clear();
  std::size_t characters = 0;
  for (const char *p = word.data(), *end = p + word.size(); p < end;) {
    const core::Char at = core::decode_char(p, end);
    const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(at.code_point));
    text::append_char(lower_, static_cast<std::uint32_t>(lower));
    p += at.bytes;
    ++characters;
  }
  if (lower_.empty() || std::ranges::find(kStopWords, lower_) != std::end(kStopWords))
    return kStopped;
  std::string_view term = lower_;
  if (characters > kNotStemmed) {
    const auto* stem = sb_stemmer_stem(stemmer_.get(),
        reinterpret_cast<const sb_symbol*>(lower_.data()), static_cast<int>(lower_.size()));
    if (stem == nullptr) throw std::bad_alloc();
    term = {reinterpret_cast<const char*>(stem),
        static_cast<std::size_t>(sb_stemmer_length(stemmer_.get()))};
  }
  if (const auto found = numbers_.find(term); found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(terms_.size());
  numbers_.emplace(terms_.emplace_back(term), number);
  return number;
}

}  // namespace passages
