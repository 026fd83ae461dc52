#include "text/chat/template_text.h"

namespace text::chat {
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
