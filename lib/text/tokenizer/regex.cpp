#include "text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace text {
namespace {

// PCRE2 takes U+180E for white space, and scripts by their extensions.
constexpr std::string_view kWhite = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kScripts[] = {
    "Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian",
    "Greek",  "Han",      "Hangul",  "Hebrew",   "Hiragana",   "Katakana", "Khmer",
    "Lao",    "Latin",    "Myanmar", "Tamil",    "Telugu",     "Thai",     "Tibetan"};

// The pattern with \s, \S and scripts as Oniguruma has them.
std::string translated(const std::string& pattern) {
  std::string out;
  int in_class = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '[') ++in_class;
    if (c == ']' && in_class > 0) --in_class;
    if (c != '\\' || i + 1 == pattern.size()) {
      out += c;
      continue;
    }
    const char next = pattern[++i];
    if (next == 's') {
      out += in_class ? std::string(kWhite) : "[" + std::string(kWhite) + "]";
    } else if (next == 'S' && !in_class) {
      out += "[^" + std::string(kWhite) + "]";
    } else if ((next == 'p' || next == 'P') && pattern.compare(i + 1, 1, "{") == 0) {
      const std::size_t close = pattern.find('}', i);
      const std::string name = close == pattern.npos ? "" : pattern.substr(i + 2, close - i - 2);
      const bool script =
          std::find(std::begin(kScripts), std::end(kScripts), name) != std::end(kScripts);
      out += {'\\', next};
      if (script) {
        out += "{sc:" + name + "}";
        i = close;
      }
    } else {
      out += {'\\', next};
    }
  }
  return out;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

namespace {

// What a thread needs to match.
struct Matcher {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* limits = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32768, 64 << 20, nullptr);
  Matcher() {
    if (data == nullptr || limits == nullptr || stack == nullptr)
      core::fail(core::Code::out_of_memory, "no memory to match a pattern");
    pcre2_set_match_limit(limits, 5000000);
    pcre2_set_heap_limit(limits, 65536);
    pcre2_jit_stack_assign(limits, nullptr, stack);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  ~Matcher() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
  }
};

}  // namespace

Regex::Regex(const std::string& pattern) : pattern_(pattern) {
  auto code = std::make_shared<Code>();
  const std::string text = translated(pattern);
  int error = 0;
  PCRE2_SIZE where = 0;
  // ^ and $ are those of lines, as in Ruby's syntax.
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), kOptions,
                             &error, &where, nullptr);
  if (code->code == nullptr) {
    char message[120] = "";
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
    core::fail(core::Code::bad_data, "the pattern {} is not supported: {}", pattern, message);
  }
  std::uint32_t behind = 0;
  pcre2_pattern_info(code->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
  if (behind > 0)
    core::fail(core::Code::bad_data,
               "the pattern {} looks behind (\\b, ^, (?<...)); such patterns are not supported",
               pattern);
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // or it interprets
  code_ = std::move(code);
}

std::optional<Regex::Match> Regex::find(const char* begin, const char* from, const char* end,
                                        bool certain) const {
  thread_local const Matcher matcher;
  const std::uint32_t options = certain ? PCRE2_PARTIAL_HARD : 0;
  while (from < end) {
    const int found = pcre2_match(
        code_->code, reinterpret_cast<PCRE2_SPTR>(begin), static_cast<PCRE2_SIZE>(end - begin),
        static_cast<PCRE2_SIZE>(from - begin), options, matcher.data, matcher.limits);
    if (found == PCRE2_ERROR_NOMATCH || found == PCRE2_ERROR_PARTIAL) return std::nullopt;
    if (found < 0)
      core::fail(core::Code::bad_data, "the pattern {} takes too long on this text (PCRE2's {})",
                 pattern_, found);
    const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(matcher.data);
    if (at[1] > at[0]) return Match{begin + at[0], begin + at[1]};
    // An empty match parts nothing; the next character may begin one that does.
    from = begin + at[1] + 1;
    while (from < end && (static_cast<unsigned char>(*from) & 0xC0) == 0x80) ++from;
  }
  return std::nullopt;
}

}  // namespace text
