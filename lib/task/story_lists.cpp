// Reads the lists from which prompts for stories are drawn, from files and from answers of models.

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/plain_text.h"
#include "core/utf8.h"
#include "task/story_markup.h"
#include "task/story_prompts.h"
#include "task/word_chars.h"

namespace task {
namespace {

constexpr std::size_t kLongestName = 7;
constexpr std::size_t kMostWords = 12;
constexpr std::string_view kBlanks = " \t\r";

/// Returns the line without white space at its ends.
std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(kBlanks);
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
}

/// Calls take(line, number) for each line without white space at its ends; empty ones and a byte
/// order mark are skipped.
template <class Take>
void each_line(std::string_view text, const Take& take) {
  text = core::without_byte_order_mark(text);
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (!line.empty()) take(line, number);
  }
}

/// Returns the length of "12. " or "12) ", or 0. The space may be missing if no digit follows: 3.5
/// is no number of an item.
std::size_t number_length(std::string_view line) {
  const auto digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits == line.npos || (line[digits] != '.' && line[digits] != ')')) return 0;
  const auto end = std::min(line.find_first_not_of(kBlanks, digits + 1), line.size());
  const bool digit_follows =
      end == digits + 1 && end < line.size() && line[end] >= '0' && line[end] <= '9';
  return digit_follows ? 0 : end;
}

/// Returns whether a further pair opens inside a pair.
bool opens_within(std::string_view inner, std::string_view open) {
  const auto in_word = [&](std::size_t i) { return i < inner.size() && is_of_word(inner[i]); };
  for (auto at = inner.find(open); at != inner.npos; at = inner.find(open, at + open.size())) {
    const bool apostrophe = open == "'" && at > 0 && in_word(at - 1) && in_word(at + 1);
    if (!apostrophe) return true;
  }
  return false;
}

/// Removes quotation marks and Markdown's asterisks around a whole item.
std::string_view unwrapped(std::string_view item) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kPairs = {
      {{"**", "**"},
       {"*", "*"},
       {"\"", "\""},
       {"'", "'"},
       {"\u201c", "\u201d"},
       {"\u2018", "\u2019"},
       {"\u201e", "\u201c"},
       {"\u00ab", "\u00bb"}}};
  for (std::size_t i = 0; i < kPairs.size();) {
    const auto& [open, close] = kPairs[i++];
    if (item.size() < open.size() + close.size()) continue;
    const auto inner = item.substr(open.size(), item.size() - open.size() - close.size());
    // If a further pair opens inside, the marks at the ends belong to different pairs.
    if (!item.starts_with(open) || !item.ends_with(close) || opens_within(inner, open)) continue;
    item = trimmed(inner);
    i = 0;  // other pairs may enclose the rest
  }
  return item;
}

/// Returns the items of a list without numbers. If most lines have a number, the others are the
/// model's text before and after its list.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> all, numbered;
  each_line(text, [&](std::string_view line, std::size_t) {
    const auto number = number_length(line);
    const auto item = unwrapped(line.substr(number));
    all.push_back(item);
    if (number > 0) numbered.push_back(item);
  });
  return 2 * numbered.size() > all.size() ? numbered : all;
}

std::string without_stops(std::string_view line) {
  std::string kept;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool ellipsis = line.substr(i, 3) == "\u2026";
    if (line[i] != '.' && !ellipsis) kept += line[i];
    if (ellipsis) i += 2;
  }
  return kept;
}

/// Returns the words that may belong to an opening, each followed by a space.
std::string first_words(std::string_view line) {
  std::string kept;
  std::size_t begin = 0;
  for (std::size_t words = 0; words < kMostWords; ++words) {
    begin = line.find_first_not_of(" \t", begin);
    if (begin == line.npos) break;
    const auto end = std::min(line.find_first_of(" \t", begin), line.size());
    const auto word = line.substr(begin, end - begin);
    if (word.find_first_of(kStoryMarkup) != word.npos) break;
    kept.append(word) += ' ';
    begin = end;
  }
  return kept;
}

}  // namespace

void read_story_words(std::string_view text, const std::string& origin, StoryParts& parts) {
  parts.nouns.clear(), parts.verbs.clear(), parts.adjectives.clear();
  each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.front() == '#') return;
    const auto gap = line.find_first_of(" \t");
    const auto kind = line.substr(0, gap);
    auto* const list = kind == "noun"        ? &parts.nouns
                       : kind == "verb"      ? &parts.verbs
                       : kind == "adjective" ? &parts.adjectives
                                             : nullptr;
    if (list == nullptr || gap == line.npos)
      core::fail(core::Code::bad_data,
                 "{}:{}: '{}' is not 'noun WORD', 'verb WORD' or 'adjective WORD'", origin, number,
                 line.substr(0, 40));
    list->emplace_back(line.substr(line.find_first_not_of(" \t", gap)));
  });
  for (const auto& [kind, list] :
       {std::pair{"noun", &parts.nouns}, {"verb", &parts.verbs}, {"adjective", &parts.adjectives}})
    if (list->empty()) core::fail(core::Code::bad_data, "{}: has no {}", origin, kind);
}

std::vector<std::string> read_first_names(std::string_view text, const std::string& origin) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  for (const auto item : items_of(text)) {
    if (item.empty() || core::count_code_points(item) > kLongestName) continue;
    if (seen.emplace(item).second) names.emplace_back(item);
  }
  if (names.empty())
    core::fail(core::Code::bad_data, "{}: has no name of at most {} letters", origin, kLongestName);
  return names;
}

StoryOpenings read_openings(std::string_view text, const std::string& origin) {
  std::vector<std::string> lines;
  for (const auto item : items_of(text)) {
    auto line = first_words(without_stops(item));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  StoryOpenings openings(std::move(lines));
  if (openings.empty()) core::fail(core::Code::bad_data, "{}: has no opening", origin);
  return openings;
}

}  // namespace task
