#include "text/tokenizer/python_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/plain_text.h"

namespace text {
namespace {

constexpr std::uint32_t kFirstSteps = 1000;  // steps of a match before its cost is counted exactly
constexpr std::size_t kShownOfName = 120;    // bytes of a pattern that a message shows

[[noreturn]] void refuse_name(const std::string& pattern, std::string_view why) {
  const bool cut = pattern.size() > kShownOfName;
  core::bad_data("the pattern {}{} {}", core::printable(pattern.substr(0, kShownOfName)),
      cut ? "..." : "", why);
}

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
      refuse_name(
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
  pcre2_match_data* data = pcre2_match_data_create(64, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  NameMatcher() {
    if (data == nullptr || context == nullptr)
      core::fail(core::Code::out_of_memory, "no memory to match a pattern");
    pcre2_set_heap_limit(context, 65536);
  }
  NameMatcher(NameMatcher&&) = delete;
  ~NameMatcher() {
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

}  // namespace

struct PythonRegex::Code {
  pcre2_code* compiled = nullptr;
  std::size_t group = 0;  // the one that find() returns
  ~Code() { pcre2_code_free(compiled); }
};

PythonRegex::PythonRegex(const std::string& pattern, Range range) : pattern_(pattern) {
  const std::string text = in_pcre2(pattern);
  const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED |
                                PCRE2_NEVER_BACKSLASH_C |
                                (range == Range::whole ? PCRE2_ENDANCHORED : 0);
  auto code = std::make_shared<Code>();
  int error = 0;
  PCRE2_SIZE where = 0;
  code->compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &where, nullptr);
  if (code->compiled == nullptr) {
    char message[120] = "";
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
    refuse_name(pattern, fmt::format("is not a regular expression: {}", message));
  }
  const int group =
      pcre2_substring_number_from_name(code->compiled, reinterpret_cast<PCRE2_SPTR>("idx"));
  if (group > 0) code->group = static_cast<std::size_t>(group);
  code_ = std::move(code);
}

std::optional<std::string_view> PythonRegex::find(
    std::string_view name, std::int64_t& steps) const {
  thread_local const NameMatcher matcher;
  for (std::int64_t limit = kFirstSteps;; limit *= 10) {
    if (steps < limit) refuse_name(pattern_, "takes too many steps");
    pcre2_set_match_limit(matcher.context, static_cast<std::uint32_t>(limit));
    const int found = pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(name.data()),
        name.size(), 0, 0, matcher.data, matcher.context);
    if (found == PCRE2_ERROR_MATCHLIMIT) {
      steps -= limit;
      continue;
    }
    steps -= kFirstSteps / 10;
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) refuse_name(pattern_, fmt::format("is too complex (PCRE2's {})", found));
    const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(matcher.data) + 2 * code_->group;
    const bool has_group = found == 0 || code_->group < static_cast<std::size_t>(found);
    if (!has_group || code_->group >= pcre2_get_ovector_count(matcher.data) || at[0] == PCRE2_UNSET)
      return std::string_view();
    return name.substr(at[0], at[1] - at[0]);
  }
}

}  // namespace text
