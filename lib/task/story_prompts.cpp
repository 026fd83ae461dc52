#include "task/story_prompts.h"

#include <sstream>

#include "core/file_text.h"
#include "core/json_line.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"

namespace task {
namespace {

/// Returns the length of the words that both lines begin with.
std::size_t common_words(std::string_view a, std::string_view b) {
  const auto common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return a.substr(0, static_cast<std::size_t>(common)).rfind(' ') + 1;  // npos + 1 is 0
}

template <class List> std::string_view drawn(const List& list, core::Rng& rng) {
  return list[rng.below(list.size())];
}

std::vector<std::string> words_of(std::string_view list) {
  std::istringstream words{std::string(list)};
  return {std::istream_iterator<std::string>(words), {}};
}

/// Returns the beginning of the answer in a request, or an empty text.
std::string opening_of(const core::Json& request, const std::string& origin) {
  const auto body = core::get<core::Json>(request, "body", origin);
  const auto messages = core::get<core::Json::array_t>(body, "messages", origin);
  if (messages.empty() || core::get<std::string>(messages.back(), "role", origin) != "assistant")
    return {};
  return core::get<std::string>(messages.back(), "content", origin);
}

bool before(const core::Digest& a, const core::Digest& b) {
  return std::pair(a.high, a.low) < std::pair(b.high, b.low);
}

/// One question and its parts.
struct Question {
  std::string instruction;
  std::string begun;  // beginning of the answer, or empty
  core::OrderedJson record;
};

std::string read_list(const std::string& path) {
  shard::UnpackedSource source(core::open_source(path));
  return core::read_utf8(source);
}

Question ask_story(const StoryPrompt& prompt, bool opening_in_answer, std::int64_t number) {
  Question question;
  question.instruction =
      prompt.instruction(opening_in_answer ? OpeningIn::answer : OpeningIn::instruction);
  if (opening_in_answer) question.begun = prompt.opening;
  question.record = {{"number", number}, {"prompt", question.instruction}, {"noun", prompt.noun},
      {"verb", prompt.verb}, {"adjective", prompt.adjective}, {"features", prompt.features},
      {"name", prompt.name}, {"opening", prompt.opening}};
  return question;
}

Question ask_list(const std::string& ask, std::int64_t number) {
  Question question;
  question.instruction =
      ask == "names" ? names_question() : openings_question(static_cast<std::uint64_t>(number));
  question.record = {{"number", number}, {"prompt", question.instruction}};
  return question;
}

}  // namespace

StoryOpenings::StoryOpenings(std::vector<std::string> lines) : lines_(std::move(lines)) {
  std::set<std::string_view> before;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::string_view line = lines_[i];
    const auto [at, fresh] = before.insert(line);
    if (!fresh) continue;
    // No earlier line has more words in common with it than its neighbours in alphabetical order.
    std::size_t known = 0;
    if (at != before.begin()) known = common_words(line, *std::prev(at));
    if (std::next(at) != before.end()) known = std::max(known, common_words(line, *std::next(at)));
    for (auto end = line.find(' ', known); end != line.npos; end = line.find(' ', end + 1))
      beginnings_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
  }
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

std::string StoryPrompt::instruction(OpeningIn place) const {
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
  text += " Write nothing but the story";
  if (place == OpeningIn::answer) return text + ".";
  text += ", and go on from its first words: ";
  text.append(opening);
  return text;
}

std::string names_question() {
  return "Write down 100 first names that children can have, no two of them alike. Make it a "
         "numbered list with one name a line, and add nothing to it.";
}

std::string openings_question(std::uint64_t number) {
  std::string text = "Think of 100 ways in which a story for children can begin.";
  if (number % 2 == 1) text += " Let no two of them start with the same word.";
  text += " Make it a numbered list with one beginning a line, and add nothing to it.";
  return text;
}

StoryParts default_story_parts() {
  return {words_of(kNouns), words_of(kVerbs), words_of(kAdjectives), words_of(kNames),
      read_openings(kOpenings, "openings")};
}

core::OrderedJson StoryRequest::json() const {
  core::OrderedJson body;
  body["model"] = model;
  body["messages"] = {{{"role", "user"}, {"content", instruction}}};
  if (!begun.empty()) {
    // Servers that continue an unfinished message need both settings: do not end it, and do not
    // begin another.
    body["messages"].push_back({{"role", "assistant"}, {"content", begun}});
    body["continue_final_message"] = true;
    body["add_generation_prompt"] = false;
  }
  body["temperature"] = temperature;
  body["max_tokens"] = max_tokens;
  return {{"custom_id", id}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", body}};
}

AnswerOpenings::AnswerOpenings(core::ByteSource& requests) : file_(requests.name()) {
  core::SeparatedPieces lines(requests, "\n");
  std::string line;
  for (std::uint64_t number = 1; lines.next(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto origin = fmt::format("{}:{}", file_, number);
    const auto request = core::parse_json_line(line, origin, {"custom_id", "body"});
    const auto id = core::hash128(core::get<std::string>(request, "custom_id", origin));
    requests_.push_back({id, &*distinct_.insert(opening_of(request, origin)).first});
  }
  sort();
}

void AnswerOpenings::sort() {
  std::ranges::sort(requests_, before, &Request::id);
  const auto twice = std::ranges::adjacent_find(requests_,
      [](const Request& a, const Request& b) { return a.id == b.id && a.opening != b.opening; });
  if (twice != requests_.end())
    core::bad_data("{}: two requests, with '{}' and '{}', have the same custom_id", file_,
        *twice->opening, *(twice + 1)->opening);
}

const std::string& AnswerOpenings::of(const core::Json& answer, const std::string& origin) const {
  static const std::string kNone;
  if (file_.empty()) return kNone;
  const auto custom_id = core::get<std::string>(answer, "custom_id", origin);
  const auto id = core::hash128(custom_id);
  const auto found = std::ranges::lower_bound(requests_, id, before, &Request::id);
  if (found == requests_.end() || found->id != id)
    core::bad_data("{}: its custom_id occurs in no request of {}: '{}'", origin, file_, custom_id);
  return *found->opening;
}

void StoryQuestionOptions::fields(core::FieldList& f) {
  f("count", n, "number of prompts").between(0, 1e12).short_name = 'n';
  f("first", first, "number of the first prompt, to generate parts of a sequence separately")
      .between(0, 1e12);
  f("ask", ask, "kind of prompts: for a story, or for a list that --names or --openings reads",
      {"story", "names", "openings"});
  f("words", words, "file of lines 'noun WORD', 'verb WORD', 'adjective WORD'");
  f("names", names, "file of first names, one per line");
  f("openings", openings, "file of openings, one per line; their first 1 to 12 words are used");
  f("opening-in", opening_in,
      "place of the opening: at the end of the instruction, or as the beginning of the answer",
      {"instruction", "answer"});
  f("output-format", form, "format of the lines", {"json", "text"});
  f("request", request, "write the requests of a batch for OpenAI's API instead",
      {"none", "openai"});
  f("model", model, "with --request: name of the model");
  f("temperature", temperature, "with --request: sampling temperature").between(0, 100);
  f("max-tokens", max_tokens, "with --request: maximum tokens of an answer").between(1, 1e9);
}

void StoryQuestionOptions::check() const {
  if ((request != "none") == model.empty())
    core::bad_usage("--request: requires --model, and --model requires it");
  if (ask == "story") return;
  const std::pair<const char*, bool> of_stories[] = {{"words", !words.empty()},
      {"names", !names.empty()}, {"openings", !openings.empty()},
      {"opening-in", opening_in != "instruction"}};
  for (const auto& [flag, given] : of_stories)
    if (given) core::bad_usage("--ask {}: --{} requires --ask story; leave it out", ask, flag);
}

StoryParts story_parts(const StoryQuestionOptions& options) {
  core::input_paths({options.words, options.names, options.openings});  // stdin is one of them
  StoryParts parts = default_story_parts();
  if (!options.words.empty()) read_story_words(read_list(options.words), options.words, parts);
  if (!options.names.empty())
    parts.names = read_first_names(read_list(options.names), options.names);
  if (!options.openings.empty())
    parts.openings = read_openings(read_list(options.openings), options.openings);
  return parts;
}

std::string story_question(const StoryQuestionOptions& options, const StoryParts& parts,
    std::int64_t seed, std::int64_t number) {
  const Question question = options.ask == "story"
                                ? ask_story(story_prompt(parts, static_cast<std::uint64_t>(seed),
                                                static_cast<std::uint64_t>(number)),
                                      options.opening_in == "answer", number)
                                : ask_list(options.ask, number);
  if (options.request != "none") {
    const StoryRequest request{fmt::format("{}-{}-{}", options.ask, seed, number), options.model,
        question.instruction, question.begun, options.temperature, options.max_tokens};
    return core::dump(request.json());
  }
  if (options.form == "json") return core::dump(question.record);
  return question.instruction + (question.begun.empty() ? "" : " ") + question.begun;
}

}  // namespace task
