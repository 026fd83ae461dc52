#include "task/story_questions.h"

#include "core/error.h"
#include "core/io.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"
#include "task/story_requests.h"

namespace task {
namespace {

using core::Code;

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
  question.record = {
      {"number", number},    {"prompt", question.instruction}, {"noun", prompt.noun},
      {"verb", prompt.verb}, {"adjective", prompt.adjective},  {"features", prompt.features},
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
    core::fail(Code::usage, "--request: requires --model, and --model requires it");
  if (ask == "story") return;
  const std::pair<const char*, bool> of_stories[] = {{"words", !words.empty()},
                                                     {"names", !names.empty()},
                                                     {"openings", !openings.empty()},
                                                     {"opening-in", opening_in != "instruction"}};
  for (const auto& [flag, given] : of_stories)
    if (given)
      core::fail(Code::usage, "--ask {}: --{} requires --ask story; leave it out", ask, flag);
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
    const StoryRequest request{fmt::format("{}-{}-{}", options.ask, seed, number),
                               options.model,
                               question.instruction,
                               question.begun,
                               options.temperature,
                               options.max_tokens};
    return core::dump(request.json());
  }
  if (options.form == "json") return core::dump(question.record);
  return question.instruction + (question.begun.empty() ? "" : " ") + question.begun;
}

}  // namespace task
