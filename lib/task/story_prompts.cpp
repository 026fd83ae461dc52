#include "task/story_prompts.h"

#include <unordered_set>

#include "core/error.h"

namespace task {
namespace {

constexpr std::size_t kLongestName = 7;
constexpr std::size_t kMostWords = 12;

/// Calls take(line, number) for each line without white space at its ends; empty ones are skipped.
template <class Take>
void each_line(std::string_view text, const Take& take) {
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == line.npos) continue;
    take(line.substr(first, line.find_last_not_of(" \t\r") - first + 1), number);
  }
}

/// "12. Anna" -> "Anna"
std::string_view without_number(std::string_view line) {
  const auto digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits == line.npos || line.substr(digits, 2) != ". ") return line;
  return line.substr(digits + 2);
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

const std::string& drawn(const std::vector<std::string>& list, core::Rng& rng) {
  return list[rng.below(list.size())];
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
                 "{}:{}: '{}' is none of 'noun WORD', 'verb WORD', 'adjective WORD'", origin,
                 number, line.substr(0, 40));
    list->emplace_back(line.substr(line.find_first_not_of(" \t", gap)));
  });
  for (const auto& [kind, list] :
       {std::pair{"noun", &parts.nouns}, {"verb", &parts.verbs}, {"adjective", &parts.adjectives}})
    if (list->empty()) core::fail(core::Code::bad_data, "{}: no {} in it", origin, kind);
}

std::vector<std::string> read_first_names(std::string_view text, const std::string& origin) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  each_line(text, [&](std::string_view line, std::size_t) {
    const std::string name(without_number(line));
    if (name.size() <= kLongestName && seen.insert(name).second) names.push_back(name);
  });
  if (names.empty())
    core::fail(core::Code::bad_data, "{}: no name of at most {} letters in it", origin,
               kLongestName);
  return names;
}

std::vector<std::string> read_openings(std::string_view text, const std::string& origin) {
  std::vector<std::string> openings;
  std::unordered_set<std::string> seen;
  each_line(text, [&](std::string_view line, std::size_t) {
    const auto clean = without_stops(without_number(line));
    std::string opening;
    std::size_t words = 0;
    for (std::size_t begin = 0; words < kMostWords; ++words) {
      begin = clean.find_first_not_of(" \t", begin);
      if (begin == clean.npos) break;
      const auto end = std::min(clean.find_first_of(" \t", begin), clean.size());
      if (words > 0) opening += ' ';
      opening += clean.substr(begin, end - begin);
      begin = end;
      if (seen.insert(opening).second) openings.push_back(opening);
    }
  });
  if (openings.empty()) core::fail(core::Code::bad_data, "{}: no opening in it", origin);
  return openings;
}

StoryPrompt story_prompt(const StoryParts& parts, std::uint64_t seed, std::uint64_t number) {
  core::Rng rng(seed, number);
  StoryPrompt prompt;
  prompt.noun = drawn(parts.nouns, rng);
  prompt.verb = drawn(parts.verbs, rng);
  prompt.adjective = drawn(parts.adjectives, rng);
  prompt.name = drawn(parts.names, rng);
  prompt.opening = drawn(parts.openings, rng);
  const auto count = 1 + rng.below(3);
  unsigned chosen = 0;
  while (static_cast<std::uint64_t>(__builtin_popcount(chosen)) < count)
    chosen |= 1U << rng.below(kStoryFeatures.size());
  for (std::size_t i = 0; i < kStoryFeatures.size(); ++i)
    if ((chosen >> i & 1U) != 0) prompt.features.push_back(kStoryFeatures[i]);
  return prompt;
}

std::string StoryPrompt::instruction() const {
  std::string text =
      "Tell a story of three to five short paragraphs that a small child understands, "
      "in simple words only. Use the character name \"";
  text.append(name).append("\", the verb \"").append(verb).append("\", the noun \"").append(noun);
  text.append("\" and the adjective \"").append(adjective).append("\".");
  for (const auto feature : features) {
    if (feature == "dialogue") text += " The characters talk with each other.";
    if (feature == "moral") text += " The story teaches something, without saying what.";
    if (feature == "twist") text += " Something happens that nobody expects.";
    if (feature == "conflict") text += " The characters want different things.";
    if (feature == "bad ending") text += " The story ends badly.";
    if (feature == "foreshadowing") text += " Early on there is a hint of what comes later.";
  }
  text += " Write nothing but the story, and go on from its first words: ";
  text.append(opening);
  return text;
}

}  // namespace task
