#include "text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

// PCRE2 treats U+180E as white space, and matches scripts by their extensions.
constexpr std::string_view kWhite = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kScripts[] = {"Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari",
    "Ethiopic", "Georgian", "Greek", "Han", "Hangul", "Hebrew", "Hiragana", "Katakana", "Khmer",
    "Lao", "Latin", "Myanmar", "Tamil", "Telugu", "Thai", "Tibetan"};

// Returns the pattern with \s, \S and scripts as Oniguruma defines them.
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
      const bool script = std::ranges::find(kScripts, name) != std::end(kScripts);
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

// Returns the largest number in a {n} or {n,m}.
std::size_t largest_repeat(const std::string& pattern) {
  std::size_t largest = 0;
  for (std::size_t i = 0; (i = pattern.find('{', i)) != pattern.npos; ++i) {
    if (i > 1 && pattern[i - 1] == 'x' && pattern[i - 2] == '\\') continue;  // \x{1234}
    std::size_t number = 0;
    for (std::size_t at = i + 1; at < pattern.size(); ++at) {
      const char c = pattern[at];
      if (c != ',' && (c < '0' || c > '9')) break;
      number = c == ',' ? 0 : std::min<std::size_t>(number * 10 + (c - '0'), 1000000);
      largest = std::max(largest, number);
    }
  }
  return largest;
}

// A match within this limit runs at full speed and is free.
constexpr std::ptrdiff_t kQuickBytes = 128;
constexpr std::uint32_t kQuickSteps = 128;
constexpr std::size_t kShown = 120;  // bytes of a pattern that a message shows

std::string shown(const std::string& pattern) {
  if (pattern.size() <= kShown) return core::printable(pattern);
  std::size_t n = kShown;
  while (n > 0 && core::is_continuation(pattern[n])) --n;
  return core::printable(pattern.substr(0, n)) + "...";
}

[[noreturn]] void refuse(const std::string& pattern, std::string_view why) {
  core::bad_data("the pattern {} {}", shown(pattern), why);
}

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T> using Owned = std::unique_ptr<T, Free>;

template <class T> Owned<T> made(T* memory) {
  if (memory == nullptr) core::fail(core::Code::out_of_memory, "no memory to match a pattern");
  return Owned<T>(memory);
}

// Compiles `text`, the form of `pattern` for PCRE2. Otherwise says what the pattern `is_not`.
Owned<pcre2_code> compiled(const std::string& text, std::uint32_t options,
    const std::string& pattern, const char* is_not) {
  int error = 0;
  PCRE2_SIZE where = 0;
  Owned<pcre2_code> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &where, nullptr));
  if (code) return code;
  char message[120] = "";
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
  refuse(pattern, fmt::format("is not {}: {}", is_not, message));
}

// Counts the steps of a match: each attempted item and each skipped byte.
struct Count {
  MatchBudget* budget;
  PCRE2_SIZE at;
};

int count_step(pcre2_callout_block* block, void* data) {
  Count& count = *static_cast<Count*>(data);
  const PCRE2_SIZE before = std::exchange(count.at, block->current_position);
  const PCRE2_SIZE passed = count.at > before ? count.at - before : 0;
  return count.budget->take(1 + passed) ? 0 : PCRE2_ERROR_CALLOUT;
}

// The matching state of a thread.
struct Matcher {
  Owned<pcre2_match_data> data = made(pcre2_match_data_create(1, nullptr));
  Owned<pcre2_match_context> quick = made(pcre2_match_context_create(nullptr));
  Owned<pcre2_match_context> counted = made(pcre2_match_context_create(nullptr));
  Owned<pcre2_jit_stack> stack = made(pcre2_jit_stack_create(32768, 64 << 20, nullptr));
  Matcher() {
    pcre2_set_match_limit(quick.get(), kQuickSteps);
    pcre2_set_match_limit(counted.get(), 100000000);  // the budget is the effective limit
    for (pcre2_match_context* const context : {quick.get(), counted.get()}) {
      pcre2_set_heap_limit(context, 65536);
      pcre2_jit_stack_assign(context, nullptr, stack.get());
    }
  }

  int run(const pcre2_code* code, const char* begin, const char* from, const char* end,
      bool certain, pcre2_match_context* context) const {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(begin),
        static_cast<PCRE2_SIZE>(end - begin), static_cast<PCRE2_SIZE>(from - begin),
        certain ? PCRE2_PARTIAL_HARD : 0, data.get(), context);
  }
};

// Returns a border of characters at `p` or a few bytes before. `p` is within the text.
const char* border(const char* begin, const char* p) {
  const char* const start = char_start(begin, p);
  // After four bytes that begin no character there is a border too.
  return core::is_continuation(*start) ? p : start;
}

constexpr std::uint32_t kFirstSteps = 1000;  // steps of a match before its cost is counted exactly

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns whether Python has the group syntax at `i`, which begins with "(?". Global flags are
// allowed at the start only.
bool is_python_group(const std::string& pattern, std::size_t i) {
  const std::string_view rest = std::string_view(pattern).substr(i + 2);
  for (const char* start : {":", "=", "!", ">", "<=", "<!", "P<", "P="})
    if (rest.starts_with(start)) return true;
  const auto end = rest.find_first_not_of("imsx-");
  return end != rest.npos && (rest[end] == ':' || (rest[end] == ')' && i == 0));
}

// Returns whether {,n} begins at `i`.
bool is_open_repeat(const std::string& pattern, std::size_t i) {
  if (pattern.compare(i, 2, "{,") != 0) return false;
  const auto end = pattern.find_first_not_of("0123456789", i + 2);
  return end != pattern.npos && pattern[end] == '}';
}

// Returns the pattern in PCRE2's syntax.
std::string in_pcre2(const std::string& pattern) {
  constexpr std::string_view kEscapes = "AbBdDsSwWafnrtvx";
  std::string out;
  bool in_class = false;
  std::size_t first = 0;  // place in a class where ] is a character
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const auto refuse_here = [&](std::size_t bytes) {
      refuse(
          pattern, fmt::format("is not supported: {}", core::printable(pattern.substr(i, bytes))));
    };
    if (c == '\\' && next != '\0') {
      const bool end = next == 'Z' && !in_class;
      if (!end && is_letter(next) && kEscapes.find(next) == kEscapes.npos) refuse_here(2);
      if (pattern.compare(i, 3, "\\x{") == 0) refuse_here(3);
      out += {c, end ? 'z' : next};
      ++i;
    } else if (in_class) {
      if (c == '[' && (next == ':' || next == '.' || next == '=')) refuse_here(2);
      in_class = c != ']' || i == first;
      out += c;
    } else if (c == '[') {
      in_class = true;
      out += c;
      if (next == '^') out += pattern[++i];
      first = i + 1;
    } else {
      if (c == '(' && (next == '*' || (next == '?' && !is_python_group(pattern, i))))
        refuse_here(3);
      out += is_open_repeat(pattern, i) ? "{0" : std::string(1, c);
    }
  }
  return out;
}

// The matching state of a thread.
struct NameMatcher {
  Owned<pcre2_match_data> data = made(pcre2_match_data_create(64, nullptr));
  Owned<pcre2_match_context> context = made(pcre2_match_context_create(nullptr));
  NameMatcher() { pcre2_set_heap_limit(context.get(), 65536); }
};

}  // namespace

struct Regex::Code {
  Owned<pcre2_code> quick;
  Owned<pcre2_code> counted;  // with a callout before every item
  bool jit = false;
};

Regex::Regex(const std::string& pattern) : pattern_(pattern) {
  // A leading (*VERB) sets options of PCRE2, which Oniguruma does not have.
  if (pattern.starts_with("(*")) refuse(pattern, "is not supported: (* at its start");
  // The most repetitions; a repeated character is compared without counting steps.
  constexpr std::size_t kMaxRepeat = 1000;
  if (largest_repeat(pattern) > kMaxRepeat)
    refuse(pattern, fmt::format("is not supported: it repeats more than {} times", kMaxRepeat));
  auto code = std::make_shared<Code>();
  const std::string text = translated(pattern);
  // ^ and $ match at lines, as in Ruby's syntax.
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  const auto compile = [&](std::uint32_t more) {
    auto one = compiled(text, kOptions | more, pattern, "supported");
    pcre2_jit_compile(one.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // or it interprets
    return one;
  };
  code->quick = compile(0);
  const auto has = [&](std::uint32_t what) {
    std::uint32_t most = 0;
    pcre2_pattern_info(code->quick.get(), what, &most);
    return most > 0;
  };
  if (has(PCRE2_INFO_MAXLOOKBEHIND))
    refuse(pattern, "looks behind (\\b, ^, (?<...)); such patterns are not supported");
  if (has(PCRE2_INFO_BACKREFMAX))
    refuse(pattern, "refers back to a group (\\1); such patterns are not supported");
  code->counted = compile(PCRE2_AUTO_CALLOUT);
  std::size_t bytes = 0;
  pcre2_pattern_info(code->counted.get(), PCRE2_INFO_JITSIZE, &bytes);
  code->jit = bytes > 0;
  code_ = std::move(code);
}

std::optional<Regex::Match> Regex::find(
    const char* begin, const char* from, const char* end, MatchBudget& budget, bool certain) const {
  thread_local const Matcher matcher;
  const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(matcher.data.get());
  // Searches a part of the text first. It contains nearly every match and all that the match
  // depends on.
  while (from < end) {
    const bool part = end - from > kQuickBytes;
    const char* const stop = part ? border(from, from + kQuickBytes) : end;
    const int found =
        matcher.run(code_->quick.get(), begin, from, stop, part || certain, matcher.quick.get());
    if (found >= 0) return Match{begin + at[0], begin + at[1]};
    if (found != PCRE2_ERROR_NOMATCH) break;
    from = stop;
  }
  if (from >= end) return std::nullopt;
  Count count{&budget, static_cast<PCRE2_SIZE>(from - begin)};
  pcre2_set_callout(matcher.counted.get(), count_step, &count);
  int found = PCRE2_ERROR_CALLOUT;
  // The interpreter checks the whole text for invalid UTF-8.
  if (budget.take(code_->jit ? 1 : 1 + static_cast<std::size_t>(end - from) / 16))
    found = matcher.run(code_->counted.get(), begin, from, end, certain, matcher.counted.get());
  if (found >= 0) return Match{begin + at[0], begin + at[1]};
  if (found == PCRE2_ERROR_NOMATCH || found == PCRE2_ERROR_PARTIAL) return std::nullopt;
  if (found == PCRE2_ERROR_CALLOUT)
    core::bad_data("the tokenizer's pattern {} takes more than {} steps for each byte of this text",
        shown(pattern_), MatchBudget::kPerByte);
  core::bad_data("the tokenizer's pattern {} takes too long on this text (PCRE2's {})",
      shown(pattern_), found);
}

struct PythonRegex::Code {
  Owned<pcre2_code> compiled;
  std::size_t group = 0;  // the one that find() returns
};

PythonRegex::PythonRegex(const std::string& pattern, Range range) : pattern_(pattern) {
  const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED |
                                PCRE2_NEVER_BACKSLASH_C |
                                (range == Range::whole ? PCRE2_ENDANCHORED : 0);
  auto code = std::make_shared<Code>();
  code->compiled = text::compiled(in_pcre2(pattern), options, pattern, "a regular expression");
  const int group =
      pcre2_substring_number_from_name(code->compiled.get(), reinterpret_cast<PCRE2_SPTR>("idx"));
  if (group > 0) code->group = static_cast<std::size_t>(group);
  code_ = std::move(code);
}

std::optional<std::string_view> PythonRegex::find(
    std::string_view name, std::int64_t& steps) const {
  thread_local const NameMatcher matcher;
  for (std::int64_t limit = kFirstSteps;; limit *= 10) {
    if (steps < limit) refuse(pattern_, "takes too many steps");
    pcre2_set_match_limit(matcher.context.get(), static_cast<std::uint32_t>(limit));
    const int found = pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(name.data()),
        name.size(), 0, 0, matcher.data.get(), matcher.context.get());
    if (found == PCRE2_ERROR_MATCHLIMIT) {
      steps -= limit;
      continue;
    }
    steps -= kFirstSteps / 10;
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) refuse(pattern_, fmt::format("is too complex (PCRE2's {})", found));
    const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(matcher.data.get()) + 2 * code_->group;
    const bool has_group = found == 0 || code_->group < static_cast<std::size_t>(found);
    if (!has_group || code_->group >= pcre2_get_ovector_count(matcher.data.get()) ||
        at[0] == PCRE2_UNSET)
      return std::string_view();
    return name.substr(at[0], at[1] - at[0]);
  }
}

}  // namespace text
