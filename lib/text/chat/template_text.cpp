#include "text/chat/template_text.h"

#include <utf8proc.h>

#include <algorithm>

namespace text::chat {
namespace {

std::uint32_t code_of(std::string_view character) {
  return decode_char(character.data(), character.data() + character.size()).code_point;
}

void append(std::string& out, std::string_view character, utf8proc_int32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto n = code < 0 ? 0 : utf8proc_encode_char(code, bytes);
  if (n > 0)
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
  else
    out += character;
}

void append_upper(std::string& out, std::string_view character) {
  const auto code = code_of(character);
  if (code == 0xDF)
    out += "SS";
  else
    append(out, character,
           code == Char::kInvalid ? -1 : utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

void append_lower(std::string& out, std::string_view character) {
  const auto code = code_of(character);
  append(out, character,
         code == Char::kInvalid ? -1 : utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

bool is_cased(std::uint32_t code) {
  return letter_kind_of(code) == LetterKind::upper || letter_kind_of(code) == LetterKind::lower;
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < text.size();) {
    const auto n = decode_char(text.data() + at, text.data() + text.size()).bytes;
    all.push_back(text.substr(at, n));
    at += n;
  }
  return all;
}

std::size_t character_count(std::string_view text) {
  std::size_t n = 0;
  for (const char *p = text.data(), *end = p + text.size(); p < end; ++n)
    p += decode_char(p, end).bytes;
  return n;
}

bool is_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right) {
  const auto goes = [&, set = characters(chars != nullptr ? *chars : "")](std::string_view c) {
    if (chars == nullptr) return is_space(code_of(c));
    return std::find(set.begin(), set.end(), c) != set.end();
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

std::string upper(std::string_view text) {
  std::string out;
  for (const auto c : characters(text)) append_upper(out, c);
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  for (const auto c : characters(text)) append_lower(out, c);
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  bool first = true;
  for (const auto c : characters(text)) {
    first ? append_upper(out, c) : append_lower(out, c);
    first = false;
  }
  return out;
}

std::string titled(std::string_view text) {
  std::string out;
  bool within = false;
  for (const auto c : characters(text)) {
    within ? append_lower(out, c) : append_upper(out, c);
    within = is_cased(code_of(c));
  }
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool first = true;
  for (const auto c : characters(text)) {
    const bool between =
        is_space(code_of(c)) ||
        (c.size() == 1 && std::string_view("-({[<").find(c[0]) != std::string_view::npos);
    first && !between ? append_upper(out, c) : append_lower(out, c);
    first = between;
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most) {
  std::string out;
  if (from.empty()) {  // between all characters
    for (const auto c : characters(text)) {
      if (most != 0) out += to, --most;
      out += c;
    }
    if (most != 0) out += to;
    return out;
  }
  std::size_t at = 0;
  for (; most != 0; --most) {
    const auto found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right) {
  std::vector<std::string> parts;
  if (separator != nullptr) {
    if (!from_right) {
      for (; most != 0; --most) {
        const auto found = text.find(*separator);
        if (found == text.npos) break;
        parts.emplace_back(text.substr(0, found));
        text.remove_prefix(found + separator->size());
      }
      parts.emplace_back(text);
      return parts;
    }
    for (; most != 0; --most) {
      const auto found = text.rfind(*separator);
      if (found == text.npos) break;
      parts.emplace_back(text.substr(found + separator->size()));
      text = text.substr(0, found);
    }
    parts.emplace_back(text);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  const auto all = characters(text);
  const auto space = [&](std::size_t i) { return is_space(code_of(all[i])); };
  if (!from_right) {
    std::size_t i = 0;
    for (;; --most) {
      while (i < all.size() && space(i)) ++i;
      if (i == all.size()) return parts;
      const char* const begin = all[i].data();
      const char* end = text.data() + text.size();
      if (most == 0) {
        parts.emplace_back(begin, end);
        return parts;
      }
      while (i < all.size() && !space(i)) ++i;
      if (i < all.size()) end = all[i].data();
      parts.emplace_back(begin, end);
    }
  }
  std::size_t i = all.size();
  for (;; --most) {
    while (i > 0 && space(i - 1)) --i;
    if (i == 0) break;
    const char* const end = all[i - 1].data() + all[i - 1].size();
    if (most == 0) {
      parts.emplace_back(text.data(), end);
      break;
    }
    while (i > 0 && !space(i - 1)) --i;
    parts.emplace_back(all[i].data(), end);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
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
    lines.emplace_back(text.substr(begin, (keep_ends ? next : at) - begin));
    begin = at = next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

bool all_are(std::string_view text, CharTest test) {
  bool cased = false;
  for (const auto character : characters(text)) {
    const auto c = code_of(character);
    const bool letter = class_of(c) == CharClass::letter;
    switch (test) {
      case CharTest::digit:
        if (!is_decimal(c)) return false;
        break;
      case CharTest::letter:
        if (!letter) return false;
        break;
      case CharTest::alnum:
        if (!letter && class_of(c) != CharClass::number) return false;
        break;
      case CharTest::space:
        if (!is_space(c)) return false;
        break;
      case CharTest::upper:
        if (letter_kind_of(c) == LetterKind::lower) return false;
        cased |= letter_kind_of(c) == LetterKind::upper;
        break;
      case CharTest::lower:
        if (letter_kind_of(c) == LetterKind::upper) return false;
        cased |= letter_kind_of(c) == LetterKind::lower;
        break;
    }
  }
  return !text.empty() && (cased || (test != CharTest::upper && test != CharTest::lower));
}

}  // namespace text::chat
