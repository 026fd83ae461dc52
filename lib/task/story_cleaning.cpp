// Reads the lists from which prompts for stories are drawn, from files and from answers of models.

#include "task/story_cleaning.h"

#include "core/file_text.h"
#include "core/json_line.h"
#include "core/plain_text.h"

namespace task {
namespace {

// Texts that follow a story. Those with a colon count at the start of a line or a sentence. The
// others count only if nothing but punctuation and white space follows on their line.
constexpr std::array<std::string_view, 26> kMarkers = {"moral:", "the moral:",
    "moral of the story:", "the moral of the story:", "lesson:", "the lesson:", "lesson learned:",
    "moral value:", "note:", "author's note:", "note to the reader:", "notes:", "plot twist:",
    "twist:", "conflict:", "dialogue:", "foreshadowing:", "bad ending:", "instruction:",
    "instructions:", "explanation:", "word count:", "questions:", "the end", "end of story",
    "to be continued"};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool begins_with(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && std::equal(start.begin(), start.end(), text.begin(),
                                            [](char a, char b) { return a == lower(b); });
}

/// Returns "user 3:" or "user:" at the start of `text`.
std::optional<std::string> turn_at(std::string_view text) {
  if (!begins_with(text, "user")) return std::nullopt;
  std::size_t at = 4;
  if (at < text.size() && text[at] == ' ') ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at >= text.size() || text[at] != ':') return std::nullopt;
  return "user";
}

std::optional<std::string> marker_at(std::string_view text) {
  for (const auto marker : kMarkers) {
    if (!begins_with(text, marker)) continue;
    const auto rest = text.substr(marker.size(), text.substr(marker.size()).find('\n'));
    const bool alone = std::ranges::none_of(
        rest, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
    if (marker.back() == ':' || alone) return std::string(marker);
  }
  return turn_at(text);
}

/// Whether the text begins with a letter or digit of any alphabet. General punctuation of Unicode
/// does not count.
bool begins_with_word(std::string_view text) {
  return !text.empty() && !text.starts_with("\xE2\x80") && is_of_word(text.front());
}

/// Whether a line or a sentence begins at `at`: at the front, after a newline, or after white space
/// that follows a full stop, an exclamation mark, a question mark or a closing quotation mark.
bool begins_sentence(std::string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_space(text[before - 1])) {
    if (text[before - 1] == '\n') return true;
    --before;
  }
  return before == 0 || (before < at && std::string_view(".!?\"").find(text[before - 1]) !=
                                            std::string_view::npos);
}

/// Replaces runs of white space by one space and removes them at the ends.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (!is_space(c)) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// Whether the text begins with the opening. Runs of white space are equal, and the opening's last
/// word must end there.
bool repeats(std::string_view text, const std::string& opening) {
  const auto start = one_line(opening), line = one_line(text);
  return line.starts_with(start) &&
         (line.size() == start.size() ||
             std::isalnum(static_cast<unsigned char>(line[start.size()])) == 0);
}

/// Whether `text`, which begins with an apostrophe, begins with 's, 't, 're or a similar ending, or
/// with a closing quotation mark.
bool ends_a_word(std::string_view text) {
  constexpr std::array<std::string_view, 8> kEndings = {"", "s", "t", "re", "ll", "ve", "d", "m"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    const auto rest = text.substr(1);
    return begins_with(rest, ending) && !begins_with_word(rest.substr(ending.size()));
  });
}

/// Whether the text after an opening lacks the space before it, which a server may remove from an
/// answer.
bool lacks_space(std::string_view opening, std::string_view text) {
  constexpr std::array<std::string_view, 13> kJoined = {
      ".", ",", ";", ":", "!", "?", ")", "-", "\u2019", "\u201d", "\u2026", "\u2013", "\u2014"};
  if (is_space(text.front())) return false;
  if (text.front() == '"')  // closes what the opening opened, or opens
    return std::ranges::count(opening, '"') % 2 == 0;
  if (text.front() == '\'') return !ends_a_word(text);
  return std::ranges::none_of(
      kJoined, [&](std::string_view mark) { return text.starts_with(mark); });
}

std::string with_opening(const std::string& opening, std::string_view text) {
  const bool blank = std::ranges::all_of(text, is_space);
  if (blank || opening.empty() || repeats(text, opening)) return std::string(text);
  return opening + (lacks_space(opening, text) ? " " : "") + std::string(text);
}

std::string reason_to_drop(const std::string& story, std::int64_t least_words) {
  for (const char* const address : {"http:", "https:", "www."})
    if (story.find(address) != std::string::npos) return "url";
  const auto markup = story.find_first_of(kStoryMarkup);
  if (markup != std::string::npos) return std::string("character ") + story[markup];
  if (story.empty()) return "empty";
  const auto words = std::ranges::count(story, ' ') + 1;
  return words < least_words ? "short" : "";
}

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
template <class Take> void each_line(std::string_view text, const Take& take) {
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
      {{"**", "**"}, {"*", "*"}, {"\"", "\""}, {"'", "'"}, {"\u201c", "\u201d"},
          {"\u2018", "\u2019"}, {"\u201e", "\u201c"}, {"\u00ab", "\u00bb"}}};
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

CleanStory clean_json(const std::string& line, const StoryFile& file, const std::string& origin) {
  const auto json = core::parse_json_line(line, origin, {file.field, file.opening_field});
  StoryQuestion question;
  if (!file.opening_field.empty())
    question.opening = core::get<std::string>(json, file.opening_field.c_str(), origin);
  if (json.is_string())
    return clean_story(json.get_ref<const std::string&>(), {}, file.least_words);
  const auto story = core::get<std::string>(json, file.field.c_str(), origin);
  if (json.contains(file.prompt_field) && json[file.prompt_field].is_string())
    question.prompt = json[file.prompt_field].get<std::string>();
  return clean_story(story, question, file.least_words);
}

// Cleans a line of the answers to a batch of chat completions. A failed request is dropped.
CleanStory clean_answer(const std::string& line, const StoryFile& file,
    const AnswerOpenings& openings, const std::string& origin) {
  static const core::Json::json_pointer kAnswer("/response/body/choices/0/message/content");
  const auto json = core::parse_json_line(line, origin, {"response"});
  if (!json.is_object() || !json.contains("custom_id"))
    core::bad_data("{}: has no \"custom_id\"", origin);
  const auto& opening = openings.of(json, origin);
  if (json.contains(kAnswer) && json[kAnswer].is_string())
    return clean_story(json[kAnswer].get<std::string>(), {{}, opening}, file.least_words);
  return {.text = "", .dropped = "no answer", .cut = ""};
}

}  // namespace

CleanStory clean_story(
    std::string_view answer, const StoryQuestion& question, std::int64_t least_words) {
  if (answer.starts_with(question.prompt)) answer.remove_prefix(question.prompt.size());
  const std::string whole = with_opening(question.opening, answer);
  std::string_view text = whole;
  CleanStory story;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (std::string_view("mtlnapcdfbiewquMTLNAPCDFBIEWQU").find(text[at]) == std::string_view::npos)
      continue;  // no marker begins this way
    if (!begins_sentence(text, at)) continue;
    if (const auto marker = marker_at(text.substr(at))) {
      story.cut = *marker;
      text = text.substr(0, at);
      break;
    }
  }
  story.text = one_line(text);
  story.dropped = reason_to_drop(story.text, least_words);
  if (!story.dropped.empty()) story.text.clear();
  return story;
}

void StoryTally::add(const CleanStory& story) {
  ++read;
  if (!story.cut.empty()) ++cut[story.cut];
  if (!story.dropped.empty()) {
    ++dropped[story.dropped];
    return;
  }
  ++kept;
  words += static_cast<std::uint64_t>(std::ranges::count(story.text, ' ')) + 1;
  characters += core::count_code_points(story.text);
}

core::OrderedJson StoryTally::figures() const {
  const auto mean = [&](std::uint64_t sum) {
    return kept == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(kept);
  };
  return {{"read", read}, {"kept", kept}, {"words", words}, {"characters", characters},
      {"words_per_story", mean(words)}, {"characters_per_story", mean(characters)},
      {"dropped", dropped}, {"cut", cut}};
}

std::vector<std::string> StoryTally::lines() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} of {} stories kept, {} words, {:.1f} characters a story", kept,
      read, words, figures()["characters_per_story"].get<double>()));
  for (const auto& [reason, count] : dropped)
    lines.push_back(fmt::format("dropped, {}: {}", reason, count));
  for (const auto& [marker, count] : cut)
    lines.push_back(fmt::format("cut at '{}': {}", marker, count));
  return lines;
}

void StoryFile::fields(core::FieldList& f) {
  f("format", format, "format of the input; openai: the answers to a batch of chat completions",
      {"jsonl", "openai", "text"});
  f("field", field, "jsonl: field of the story, if a line is an object");
  f("prompt-field", prompt_field,
      "jsonl: field of the prompt, which is removed from a story that repeats it");
  f("opening-field", opening_field,
      "jsonl: field of the opening, which is prepended to a story that does not repeat it");
  f("requests", requests,
      "openai: batch file of the requests; if a request ends with a message of the assistant, "
      "it is prepended to the answer");
  f("separator", separator, "text: separator between stories");
}

void StoryFile::check() const {
  if (format == "text" && separator.empty()) core::bad_usage("--separator: takes a non-empty text");
  if (format != "jsonl" && !opening_field.empty())
    core::bad_usage("--opening-field: requires --format jsonl");
  if (format != "openai" && !requests.empty())
    core::bad_usage("--requests: requires --format openai");
}

void clean_stories(core::ByteSource& source, const StoryFile& file, const AnswerOpenings& openings,
    const std::function<void(const CleanStory&)>& take) {
  const auto clean = [&](const std::string& piece, const std::string& origin) {
    if (file.format == "text") return clean_story(piece, {}, file.least_words);
    if (file.format == "openai") return clean_answer(piece, file, openings, origin);
    return clean_json(piece, file, origin);
  };
  core::SeparatedPieces pieces(source, file.format == "text" ? file.separator : "\n");
  std::string piece;
  for (std::uint64_t number = 1; pieces.next(piece); ++number) {
    if (piece.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    take(clean(piece, fmt::format("{}:{}", source.name(), number)));
  }
}

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
      core::bad_data("{}:{}: '{}' is not 'noun WORD', 'verb WORD' or 'adjective WORD'", origin,
          number, line.substr(0, 40));
    list->emplace_back(line.substr(line.find_first_not_of(" \t", gap)));
  });
  for (const auto& [kind, list] :
      {std::pair{"noun", &parts.nouns}, {"verb", &parts.verbs}, {"adjective", &parts.adjectives}})
    if (list->empty()) core::bad_data("{}: has no {}", origin, kind);
}

std::vector<std::string> read_first_names(std::string_view text, const std::string& origin) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  for (const auto item : items_of(text)) {
    if (item.empty() || core::count_code_points(item) > kLongestName) continue;
    if (seen.emplace(item).second) names.emplace_back(item);
  }
  if (names.empty()) core::bad_data("{}: has no name of at most {} letters", origin, kLongestName);
  return names;
}

StoryOpenings read_openings(std::string_view text, const std::string& origin) {
  std::vector<std::string> lines;
  for (const auto item : items_of(text)) {
    auto line = first_words(without_stops(item));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  StoryOpenings openings(std::move(lines));
  if (openings.empty()) core::bad_data("{}: has no opening", origin);
  return openings;
}

}  // namespace task
