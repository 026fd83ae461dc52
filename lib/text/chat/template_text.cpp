#include "text/chat/template_text.h"

#include <utf8proc.h>

namespace text::chat {
namespace {

struct CodeRange {
  std::uint32_t first, last;
};
template <std::size_t N> bool is_in(const CodeRange (&ranges)[N], std::uint32_t c) {
  const auto* found = std::upper_bound(std::begin(ranges), std::end(ranges), c,
      [](std::uint32_t x, const CodeRange& r) { return x <= r.last; });
  return found != std::end(ranges) && found->first <= c;
}

// Unicode's Other_Lowercase and Other_Uppercase.
constexpr CodeRange kOtherLower[] = {{0xAA, 0xAA}, {0xBA, 0xBA}, {0x2B0, 0x2B8}, {0x2C0, 0x2C1},
    {0x2E0, 0x2E4}, {0x345, 0x345}, {0x37A, 0x37A}, {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78},
    {0x1D9B, 0x1DBF}, {0x2071, 0x2071}, {0x207F, 0x207F}, {0x2090, 0x209C}, {0x2170, 0x217F},
    {0x24D0, 0x24E9}, {0x2C7C, 0x2C7D}, {0xA69C, 0xA69D}, {0xA770, 0xA770}, {0xA7F8, 0xA7F9},
    {0xAB5C, 0xAB5F}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}};
constexpr CodeRange kOtherUpper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
// Digits that are not decimal: of exponents, in circles and the like (Numeric_Type=Digit).
constexpr CodeRange kOtherDigits[] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0x1369, 0x1371},
    {0x19DA, 0x19DA}, {0x2070, 0x2070}, {0x2074, 0x2079}, {0x2080, 0x2089}, {0x2460, 0x2468},
    {0x2474, 0x247C}, {0x2488, 0x2490}, {0x24EA, 0x24EA}, {0x24F5, 0x24FD}, {0x24FF, 0x24FF},
    {0x2776, 0x277E}, {0x2780, 0x2788}, {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68},
    {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
// Letters that are numbers (Numeric_Type=Numeric).
constexpr std::uint32_t kNumerals[] = {0x3405, 0x3483, 0x382A, 0x3B4D, 0x4E00, 0x4E03, 0x4E07,
    0x4E09, 0x4E5D, 0x4E8C, 0x4E94, 0x4E96, 0x4EBF, 0x4EC0, 0x4EDF, 0x4EE8, 0x4F0D, 0x4F70, 0x5104,
    0x5146, 0x5169, 0x516B, 0x516D, 0x5341, 0x5343, 0x5344, 0x5345, 0x534C, 0x53C1, 0x53C2, 0x53C3,
    0x53C4, 0x56DB, 0x58F1, 0x58F9, 0x5E7A, 0x5EFE, 0x5EFF, 0x5F0C, 0x5F0D, 0x5F0E, 0x5F10, 0x62FE,
    0x634C, 0x67D2, 0x6F06, 0x7396, 0x767E, 0x8086, 0x842C, 0x8CAE, 0x8CB3, 0x8D30, 0x9621, 0x9646,
    0x964C, 0x9678, 0x96F6, 0xF96B, 0xF973, 0xF978, 0xF9B2, 0xF9D1, 0xF9D3, 0xF9FD, 0x20001,
    0x20064, 0x200E2, 0x20121, 0x2092A, 0x20983, 0x2098C, 0x2099C, 0x20AEA, 0x20AFD, 0x20B19,
    0x22390, 0x22998, 0x23B1B, 0x2626D, 0x2F890};

// Unicode's SpecialCasing: upper cases of several characters. U+1F80 to U+1FAF follow a rule.
struct LongUpper {
  std::uint32_t of;
  std::u32string_view upper;
};
constexpr LongUpper kLongUppers[] = {{0xDF, U"SS"}, {0x149, U"\x2BCN"}, {0x1F0, U"J\x30C"},
    {0x390, U"\x399\x308\x301"}, {0x3B0, U"\x3A5\x308\x301"}, {0x587, U"\x535\x552"},
    {0x1E96, U"H\x331"}, {0x1E97, U"T\x308"}, {0x1E98, U"W\x30A"}, {0x1E99, U"Y\x30A"},
    {0x1E9A, U"\x41\x2BE"}, {0x1F50, U"\x3A5\x313"}, {0x1F52, U"\x3A5\x313\x300"},
    {0x1F54, U"\x3A5\x313\x301"}, {0x1F56, U"\x3A5\x313\x342"}, {0x1FB2, U"\x1FBA\x399"},
    {0x1FB3, U"\x391\x399"}, {0x1FB4, U"\x386\x399"}, {0x1FB6, U"\x391\x342"},
    {0x1FB7, U"\x391\x342\x399"}, {0x1FBC, U"\x391\x399"}, {0x1FC2, U"\x1FCA\x399"},
    {0x1FC3, U"\x397\x399"}, {0x1FC4, U"\x389\x399"}, {0x1FC6, U"\x397\x342"},
    {0x1FC7, U"\x397\x342\x399"}, {0x1FCC, U"\x397\x399"}, {0x1FD2, U"\x399\x308\x300"},
    {0x1FD3, U"\x399\x308\x301"}, {0x1FD6, U"\x399\x342"}, {0x1FD7, U"\x399\x308\x342"},
    {0x1FE2, U"\x3A5\x308\x300"}, {0x1FE3, U"\x3A5\x308\x301"}, {0x1FE4, U"\x3A1\x313"},
    {0x1FE6, U"\x3A5\x342"}, {0x1FE7, U"\x3A5\x308\x342"}, {0x1FF2, U"\x1FFA\x399"},
    {0x1FF3, U"\x3A9\x399"}, {0x1FF4, U"\x38F\x399"}, {0x1FF6, U"\x3A9\x342"},
    {0x1FF7, U"\x3A9\x342\x399"}, {0x1FFC, U"\x3A9\x399"}, {0xFB00, U"FF"}, {0xFB01, U"FI"},
    {0xFB02, U"FL"}, {0xFB03, U"FFI"}, {0xFB04, U"FFL"}, {0xFB05, U"ST"}, {0xFB06, U"ST"},
    {0xFB13, U"\x544\x546"}, {0xFB14, U"\x544\x535"}, {0xFB15, U"\x544\x53B"},
    {0xFB16, U"\x54E\x546"}, {0xFB17, U"\x544\x53D"}};

// Returns the upper case of several characters, or an empty text.
std::u32string long_upper(std::uint32_t c) {
  if (c < 0xDF) return {};
  if (c >= 0x1F80 && c < 0x1FB0) {
    const auto base = c < 0x1F90 ? 0x1F08U : c < 0x1FA0 ? 0x1F28U : 0x1F68U;
    return {base + (c & 7), 0x399};
  }
  const auto* found = std::lower_bound(std::begin(kLongUppers), std::end(kLongUppers), c,
      [](const LongUpper& one, std::uint32_t x) { return one.of < x; });
  return found != std::end(kLongUppers) && found->of == c ? std::u32string(found->upper)
                                                          : std::u32string();
}

utf8proc_category_t category(std::uint32_t c) {
  return c > 0x10FFFF ? UTF8PROC_CATEGORY_CN : utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
std::uint32_t simple(utf8proc_int32_t map(utf8proc_int32_t), std::uint32_t c) {
  return static_cast<std::uint32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

// Unicode's Case_Ignorable.
bool is_case_ignorable(std::uint32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
  }
  static constexpr std::uint32_t kMarks[] = {0x27, 0x2E, 0x3A, 0xB7, 0x387, 0x55F, 0x5F4, 0x2018,
      0x2019, 0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  return std::binary_search(std::begin(kMarks), std::end(kMarks), c);
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

}  // namespace

bool is_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}
bool is_lower(std::uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return category(c) == UTF8PROC_CATEGORY_LL || is_in(kOtherLower, c);
}
bool is_upper(std::uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return category(c) == UTF8PROC_CATEGORY_LU || is_in(kOtherUpper, c);
}
bool is_cased(std::uint32_t c) {
  return is_lower(c) || is_upper(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT);
}
bool is_digit(std::uint32_t c) { return is_decimal(c) || is_in(kOtherDigits, c); }
bool is_numeric(std::uint32_t c) {
  return class_of(c) == CharClass::number ||
         std::binary_search(std::begin(kNumerals), std::end(kNumerals), c);
}
bool is_alpha(std::uint32_t c) { return class_of(c) == CharClass::letter; }
bool is_alnum(std::uint32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_printable(std::uint32_t c) {
  if (c < 0x7F) return c >= ' ';
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

int decimal_value(std::uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  if (!is_decimal(c)) return -1;
  if (c >= 0x1D7CE && c <= 0x1D7FF) return static_cast<int>((c - 0x1D7CE) % 10);
  // The ten digits of a script begin at a multiple of 16, or 6 above one.
  const auto low = static_cast<int>(c & 15);
  return is_decimal(c & ~15U) ? low : low - 6;
}

void append_code(std::string& out, std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

void append_upper(std::string& out, std::string_view character, std::uint32_t c) {
  if (c == Char::kInvalid) {
    out += character;
  } else if (const auto several = long_upper(c); !several.empty()) {
    for (const auto one : several) append_code(out, one);
  } else {
    append_code(out, simple(utf8proc_toupper, c));
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
    return append_code(out, title);
  append_code(out, several[0]);
  for (std::size_t i = 1; i < several.size(); ++i)
    append_code(out, several[i] == 0x399    ? 0x345
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
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_code(out, static_cast<std::uint32_t>(folded[i]));
}

void append_lower(std::string& out, std::string_view text, std::size_t at, const Char& character) {
  const auto c = character.code_point;
  if (c == Char::kInvalid) out += text.substr(at, character.bytes);
  else if (c == 0x130) out += "i\xCC\x87";
  else if (c == 0x3A3) out += ends_word(text, at, at + character.bytes) ? "\xCF\x82" : "\xCF\x83";
  else append_code(out, simple(utf8proc_tolower, c));
}

namespace {

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

}  // namespace

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

}  // namespace text::chat
