#include "text/documents/wikitext.h"

namespace text {
namespace {

// Returns the length of the white space character at `at`, or 0. White space is all of Unicode's in
// UTF-8, and the separators 0x1c to 0x1f.
std::size_t space_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned first = byte(0), second = byte(1), third = byte(2);
  if (first == ' ' || (first >= 9 && first <= 13) || (first >= 0x1c && first <= 0x1f)) return 1;
  if (first == 0xc2) return second == 0x85 || second == 0xa0 ? 2 : 0;
  if (first == 0xe1) return second == 0x9a && third == 0x80 ? 3 : 0;  // U+1680
  if (first == 0xe3) return second == 0x80 && third == 0x80 ? 3 : 0;  // U+3000
  if (first != 0xe2) return 0;
  if (second == 0x81) return third == 0x9f ? 3 : 0;  // U+205F
  if (second != 0x80) return 0;
  const bool spaces = third >= 0x80 && third <= 0x8a;  // U+2000 to U+200A
  return spaces || third == 0xa8 || third == 0xa9 || third == 0xaf ? 3 : 0;
}

std::string_view trimmed(std::string_view text) {
  while (const std::size_t n = space_at(text, 0)) text.remove_prefix(n);
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t n : {1, 2, 3})
      if (text.size() >= n && space_at(text, text.size() - n) == n) {
        text.remove_suffix(n);
        more = true;
        break;
      }
  }
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != text.npos; begin = at + from.size())
    out.append(text, begin, at - begin).append(to);
  if (begin > 0) text = std::move(out.append(text, begin));
}

// Removes white space after each `open` and before the next `close`.
void close_up(std::string& text, char open, char close) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(open, begin)) != text.npos;) {
    const std::size_t end = text.find(close, at + 1);
    if (end == text.npos) break;
    out.append(text, begin, at + 1 - begin);
    out.append(trimmed(std::string_view(text).substr(at + 1, end - at - 1))).push_back(close);
    begin = end + 1;
  }
  text = std::move(out.append(text, begin));
}

// Replaces "/' 5/". The harness does this by mistake, but its figures include it.
void replace_slashed_digit(std::string& text) {
  for (std::size_t at = 0; (at = text.find("/' ", at)) != text.npos; ++at)
    if (at + 4 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/')
      text.replace(at, 5, "/'[0-9]/");
}

using Change = std::pair<std::string_view, std::string_view>;

constexpr std::array<Change, 9> kMarks = {{{" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."},
    {" : ", ": "}, {" ; ", "; "}, {" . ", ". "}, {" ! ", "! "}, {" ? ", "? "}, {" , ", ", "}}};
constexpr std::array<Change, 8> kRest = {{{"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},
    {" \u00b0 ", "\u00b0"}, {" \n", "\n"}, {"\n ", "\n"}, {" N ", " 1 "}, {" 's", "'s"}}};

}  // namespace

bool is_wikitext_title(std::string_view line) {
  if (!trimmed(line).starts_with('=')) return false;
  std::string joined(line);
  replace_all(joined, "= = =", "===");
  replace_all(joined, "= =", "==");
  const std::string_view title = trimmed(joined);
  return title.starts_with("= ") && title.ends_with(" =");
}

std::string wikitext_detokenised(std::string_view page) {
  std::string text(page);
  replace_all(text, "s '", "s'");
  replace_slashed_digit(text);
  for (const auto& [from, to] : kMarks) replace_all(text, from, to);
  for (const std::string_view pair : {"()", "[]", "{}", "\"\"", "''"})
    close_up(text, pair[0], pair[1]);
  for (const auto& [from, to] : kRest) replace_all(text, from, to);
  return text;
}

std::uint64_t wikitext_words(std::string_view page) {
  std::uint64_t words = 1;
  for (std::size_t at = 0; at < page.size();) {
    std::size_t n = space_at(page, at);
    if (n == 0) {
      ++at;
      continue;
    }
    ++words;
    for (; n > 0; n = space_at(page, at)) at += n;
  }
  return words;
}

}  // namespace text
