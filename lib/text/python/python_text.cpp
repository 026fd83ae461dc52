#include "text/python/python_text.h"

#include <utf8proc.h>

#include <charconv>
#include <sstream>

namespace text::python {
namespace {

struct CodeRange {
  std::uint32_t first, last;
};

std::map<std::string, std::vector<CodeRange>> tables() {
  std::map<std::string, std::vector<CodeRange>> all;
  std::istringstream lines{std::string(kCharacters)};
  for (std::string line, name, word; std::getline(lines, line);) {
    std::istringstream words(line);
    for (words >> name; words >> word;) {
      std::size_t end = 0;
      const auto first = static_cast<std::uint32_t>(std::stoul(word, &end, 16));
      all[name].push_back({first, first});
      if (end < word.size())
        all[name].back().last =
            static_cast<std::uint32_t>(std::stoul(word.substr(end + 1), nullptr, 16));
    }
  }
  return all;
}

const std::vector<CodeRange>& table(const std::string& name) {
  static const auto all = tables();
  const auto found = all.find(name);
  static const std::vector<CodeRange> none;
  return found == all.end() ? none : found->second;
}

bool is_in(const std::vector<CodeRange>& ranges, std::uint32_t c) {
  const auto found = std::ranges::lower_bound(ranges, c, {}, &CodeRange::last);
  return found != ranges.end() && found->first <= c;
}

// Returns the upper case of several characters, or an empty text.
std::u32string long_upper(std::uint32_t c) {
  std::u32string upper;
  if (c >= 0xDF)
    for (const auto& range : table(fmt::format("{:X}", c))) upper += range.first;
  return upper;
}

utf8proc_category_t category(std::uint32_t c) {
  return c > 0x10FFFF ? UTF8PROC_CATEGORY_CN : utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
std::uint32_t simple(utf8proc_int32_t map(utf8proc_int32_t), std::uint32_t c) {
  return static_cast<std::uint32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

// Unicode's Case_Ignorable.
bool is_case_ignorable(std::uint32_t c) {
  static constexpr utf8proc_category_t kCategories[] = {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME,
      UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_SK};
  static constexpr std::uint32_t kMarks[] = {0x27, 0x2E, 0x3A, 0xB7, 0x387, 0x55F, 0x5F4, 0x2018,
      0x2019, 0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  return core::contains(kCategories, category(c)) || std::ranges::binary_search(kMarks, c);
}

bool ends_word(std::string_view text, std::size_t at, std::size_t next) {
  const char *const begin = text.data(), *const end = begin + text.size();
  const char* p = begin + at;
  for (bool cased = false; !cased;) {
    if (p == begin) return false;
    p = previous_char(begin, p);
    const auto c = decode_char(p, end).code_point;
    if (is_case_ignorable(c)) continue;
    if (!is_cased(c)) return false;
    cased = true;
  }
  for (p = begin + next; p < end;) {
    const auto c = decode_char(p, end);
    if (!is_case_ignorable(c.code_point)) return !is_cased(c.code_point);
    p += c.bytes;
  }
  return true;
}

std::string mapped(
    std::string_view text, void append(std::string&, std::string_view, std::uint32_t)) {
  std::string out;
  each_character(text, [&](std::string_view c, std::uint32_t code) { append(out, c, code); });
  return out;
}

// Appends the character of `text` that begins where `c` does, in lower case.
void lower_at(std::string& out, std::string_view text, std::string_view c, std::uint32_t code) {
  append_lower(out, text, static_cast<std::size_t>(c.data() - text.data()),
      {code, static_cast<std::uint32_t>(c.size())});
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

// Reads `n` or, of octal ones, up to `n` digits at `at`, which moves behind them.
std::optional<std::uint32_t> read_digits(
    std::string_view text, std::size_t& at, std::size_t n, int base) {
  const std::string_view digits = text.substr(std::min(at, text.size()), n);
  std::uint32_t code = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), code, base).ptr;
  const auto read = static_cast<std::size_t>(end - digits.data());
  at += read;
  return base == 8 || read == n ? std::optional(code) : std::nullopt;
}

// Reads what follows a backslash at `at`, which moves behind it.
void read_escape(std::string_view source, std::size_t& at, std::string& out,
    const std::function<void(const char*)>& fail) {
  static constexpr std::string_view kNames = "ntrbfav\\'\"", kMeanings = "\n\t\r\b\f\a\v\\'\"";
  const char c = source[at++];
  if (c == '\n') return;
  if (const auto known = kNames.find(c); known != kNames.npos) {
    out += kMeanings[known];
    return;
  }
  if (c == 'N') fail("\\N in a string is not supported");
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  const bool octal = c >= '0' && c <= '7';
  if (digits == 0 && !octal) {
    out += {'\\', c};
    return;
  }
  auto code = octal ? read_digits(source, --at, 3, 8) : read_digits(source, at, digits, 16);
  if (!code) fail("an escape without its digits");
  if (*code >= 0xD800 && *code < 0xDC00 && source.substr(at, 2) == "\\u") {
    std::size_t after = at + 2;
    const auto low = read_digits(source, after, 4, 16);
    if (!low) fail("an escape without its digits");
    if (*low >= 0xDC00 && *low < 0xE000) {
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      at = after;
    }
  }
  if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000))
    fail("an escape that is no character");
  append_char(out, *code);
}

}  // namespace

std::size_t read_quoted(std::string_view source, std::size_t at, std::string& out,
    const std::function<void(const char*)>& fail) {
  const char quote = source[at++];
  while (true) {
    if (at >= source.size()) fail("an unterminated string");
    const char c = source[at++];
    if (c == quote) return at;
    if (c != '\\') out += c;
    else if (at < source.size()) read_escape(source, at, out, fail);
  }
}

bool is_space(std::uint32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return class_of(c) == CharClass::space;
}
bool is_lower(std::uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return category(c) == UTF8PROC_CATEGORY_LL || is_in(table("lower"), c);
}
bool is_upper(std::uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return category(c) == UTF8PROC_CATEGORY_LU || is_in(table("upper"), c);
}
bool is_cased(std::uint32_t c) {
  return is_lower(c) || is_upper(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT);
}
bool is_digit(std::uint32_t c) { return is_decimal(c) || is_in(table("digit"), c); }
bool is_numeric(std::uint32_t c) {
  return class_of(c) == CharClass::number || is_in(table("numeral"), c);
}
bool is_alpha(std::uint32_t c) { return class_of(c) == CharClass::letter; }
bool is_alnum(std::uint32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_printable(std::uint32_t c) {
  if (c < 0x7F) return c >= ' ';
  const auto of = category(c);  // ZS and those behind it are separators, controls and the like
  return of != UTF8PROC_CATEGORY_CN && of < UTF8PROC_CATEGORY_ZS;
}

int decimal_value(std::uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  if (!is_decimal(c)) return -1;
  if (c >= 0x1D7CE && c <= 0x1D7FF) return static_cast<int>((c - 0x1D7CE) % 10);
  // The ten digits of a script begin at a multiple of 16, or 6 above one.
  const auto low = static_cast<int>(c & 15);
  return is_decimal(c & ~15U) ? low : low - 6;
}

void append_upper(std::string& out, std::string_view character, std::uint32_t c) {
  if (c == Char::kInvalid) {
    out += character;
  } else if (const auto several = long_upper(c); !several.empty()) {
    for (const auto one : several) append_char(out, one);
  } else {
    append_char(out, simple(utf8proc_toupper, c));
  }
}

void append_title(std::string& out, std::string_view character, std::uint32_t c) {
  if (c == Char::kInvalid) {
    out += character;
    return;
  }
  const auto title = simple(utf8proc_totitle, c);
  const auto several = long_upper(c);
  if (several.empty() || (title != c && c != 0xDF) || category(c) == UTF8PROC_CATEGORY_LT)
    return append_char(out, title);
  append_char(out, several[0]);
  for (std::size_t i = 1; i < several.size(); ++i)
    append_char(out, several[i] == 0x399    ? 0x345
                     : is_cased(several[0]) ? simple(utf8proc_tolower, several[i])
                                            : several[i]);
}

void append_folded(std::string& out, std::string_view character, std::uint32_t c) {
  utf8proc_int32_t folded[8];
  int boundary = 0;
  const auto n = c == Char::kInvalid ? 0
                                     : utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c),
                                           folded, 8, UTF8PROC_CASEFOLD, &boundary);
  if (n <= 0 || n > 8) {
    out += character;
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_char(out, static_cast<std::uint32_t>(folded[i]));
}

void append_lower(std::string& out, std::string_view text, std::size_t at, const Char& character) {
  const auto c = character.code_point;
  if (c == Char::kInvalid) out += text.substr(at, character.bytes);
  else if (c == 0x130) out += "i\xCC\x87";
  else if (c == 0x3A3) out += ends_word(text, at, at + character.bytes) ? "\xCF\x82" : "\xCF\x83";
  else append_char(out, simple(utf8proc_tolower, c));
}

std::size_t character_count(std::string_view text) {
  std::size_t n = 0;
  each_character(text, [&](std::string_view, std::uint32_t) { ++n; });
  return n;
}

std::size_t byte_of(std::string_view text, std::size_t place) {
  const char *p = text.data(), *const end = p + text.size();
  for (; place > 0 && p < end; --place) p += decode_char(p, end).bytes;
  return static_cast<std::size_t>(p - text.data());
}

// The standard library's search takes the product of the sizes; the C library's does not.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return text.npos;
  if (part.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? text.npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last(std::string_view text, std::string_view part) {
  const auto found = find_text(reversed(text), reversed(part));
  return found == text.npos ? found : text.size() - found - part.size();
}

std::size_t count_text(std::string_view text, std::string_view part) {
  if (part.empty()) return character_count(text) + 1;
  std::size_t n = 0;
  for (std::size_t at = 0; (at = find_text(text, part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right) {
  std::set<std::string_view> set;
  if (chars != nullptr)
    each_character(*chars, [&](std::string_view c, std::uint32_t) { set.insert(c); });
  const auto goes = [&](std::string_view c) {
    if (chars != nullptr) return set.count(c) > 0;
    return is_space(decode_char(c.data(), c.data() + c.size()).code_point);
  };
  while (left && !text.empty()) {
    const auto n = decode_char(text.data(), text.data() + text.size()).bytes;
    if (!goes(text.substr(0, n))) break;
    text.remove_prefix(n);
  }
  while (right && !text.empty()) {
    const char* const end = text.data() + text.size();
    const auto n = static_cast<std::size_t>(end - previous_char(text.data(), end));
    if (!goes(text.substr(text.size() - n))) break;
    text.remove_suffix(n);
  }
  return text;
}

std::string upper(std::string_view text) { return mapped(text, append_upper); }
std::string casefolded(std::string_view text) { return mapped(text, append_folded); }

std::string lower(std::string_view text) {
  std::string out;
  each_character(
      text, [&](std::string_view c, std::uint32_t code) { lower_at(out, text, c, code); });
  return out;
}

std::string case_swapped(std::string_view text) {
  std::string out;
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    if (is_upper(code)) lower_at(out, text, c, code);
    else if (is_lower(code)) append_upper(out, c, code);
    else out += c;
  });
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    if (c.data() == text.data()) append_title(out, c, code);
    else lower_at(out, text, c, code);
  });
  return out;
}

std::string titled(std::string_view text) {
  std::string out;
  bool within = false;
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    if (within) lower_at(out, text, c, code);
    else append_title(out, c, code);
    within = is_cased(code);
  });
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool first = true;
  std::size_t begin = 0;
  const auto end_word = [&](std::size_t end) { out += lower(text.substr(begin, end - begin)); };
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    const bool between =
        is_space(code) || std::string_view("-({[<").find(c) != std::string_view::npos;
    const auto at = static_cast<std::size_t>(c.data() - text.data());
    if (between != first) {
      end_word(at);
      begin = at;
    }
    if (first && !between) {
      append_upper(out, c, code);
      begin = at + c.size();
    }
    first = between;
  });
  end_word(text.size());
  return out;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
    std::int64_t most, const std::function<void(double)>& expect) {
  auto left = static_cast<std::uint64_t>(most);  // a negative number is more than any text has
  const auto times = std::min<std::uint64_t>(left, count_text(text, from));
  expect(static_cast<double>(text.size()) +
         static_cast<double>(times) *
             (static_cast<double>(to.size()) - static_cast<double>(from.size())));
  std::string out;
  if (from.empty()) {  // between all characters
    each_character(text, [&](std::string_view c, std::uint32_t) {
      if (left > 0) out += to, --left;
      out += c;
    });
    if (left > 0) out += to;
    return out;
  }
  std::size_t at = 0;
  for (; left > 0; --left) {
    const auto found = find_text(text, from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

void split(std::string_view text, const std::string* separator, std::int64_t most, bool from_right,
    const Parts& put) {
  auto left = static_cast<std::uint64_t>(most);
  if (separator != nullptr && !from_right) {
    for (; left > 0; --left) {
      const auto found = find_text(text, *separator);
      if (found == text.npos) break;
      put(text.substr(0, found));
      text.remove_prefix(found + separator->size());
    }
    return put(text);
  }
  if (separator != nullptr) {
    const std::string back = reversed(text), part = reversed(*separator);
    std::size_t at = 0;
    for (; left > 0; --left) {
      const auto found = find_text(back, part, at);
      if (found == back.npos) break;
      put(text.substr(text.size() - found, found - at));
      at = found + part.size();
    }
    return put(text.substr(0, text.size() - at));
  }
  for (;; --left) {
    text = stripped(text, nullptr, !from_right, from_right);
    if (text.empty()) return;
    if (left == 0) return put(text);
    const char *begin = text.data(), *end = begin + text.size();
    if (from_right) {
      const char* p = end;
      for (const char* before = p; p > begin; p = before) {
        before = previous_char(begin, p);
        if (is_space(decode_char(before, p).code_point)) break;
      }
      put({p, static_cast<std::size_t>(end - p)});
      end = p;
    } else {
      const char* p = begin;
      while (p < end) {
        const auto c = decode_char(p, end);
        if (is_space(c.code_point)) break;
        p += c.bytes;
      }
      put({begin, static_cast<std::size_t>(p - begin)});
      begin = p;
    }
    text = {begin, static_cast<std::size_t>(end - begin)};
  }
}

void split_lines(std::string_view text, bool keep_ends, const Parts& put) {
  const auto ends = [](std::uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = decode_char(text.data() + at, text.data() + text.size());
    std::size_t next = at + c.bytes;
    if (!ends(c.code_point)) {
      at = next;
      continue;
    }
    if (c.code_point == '\r' && next < text.size() && text[next] == '\n') ++next;
    put(text.substr(begin, (keep_ends ? next : at) - begin));
    begin = at = next;
  }
  if (begin < text.size()) put(text.substr(begin));
}

std::string expanded_tabs(
    std::string_view text, std::int64_t width, const std::function<void(double)>& expect) {
  std::string out;
  std::int64_t column = 0;
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    if (code != '\t') {
      out += c;
      column = code == '\n' || code == '\r' ? 0 : column + 1;
    } else if (width > 0) {
      const auto more = width - column % width;
      expect(static_cast<double>(out.size()) + static_cast<double>(more));
      out.append(static_cast<std::size_t>(more), ' ');
      column = 0;
    }
  });
  return out;
}

bool all_are(std::string_view text, bool test(std::uint32_t)) {
  bool all = !text.empty();
  each_character(text, [&](std::string_view, std::uint32_t code) { all = all && test(code); });
  return all;
}

bool is_of_case(std::string_view text, bool upper) {
  bool any = false, other = false;
  each_character(text, [&](std::string_view, std::uint32_t code) {
    const bool has = upper ? is_upper(code) : is_lower(code);
    any = any || has;
    other = other || (!has && is_cased(code));
  });
  return any && !other;
}

bool is_titled(std::string_view text) {
  bool any = false, wrong = false, within = false;
  each_character(text, [&](std::string_view, std::uint32_t code) {
    const bool cased = is_cased(code), lower = is_lower(code);
    wrong = wrong || (cased && lower != within);
    any = any || cased;
    within = cased;
  });
  return any && !wrong;
}

}  // namespace text::python
