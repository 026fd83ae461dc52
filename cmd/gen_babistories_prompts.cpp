// gen-babistories-prompts: prompts that ask a language model for short stories that differ, or for
// lists of the names and openings that make them differ.
//
// stdout, or -o: one prompt a line: a JSON object with every part, the text alone, or a request of
// a chat-completion batch file.

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/json.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"
#include "task/story_prompts.h"
#include "task/story_requests.h"

namespace {

using core::Code;

struct Options {
  std::int64_t n = 1000, first = 0;
  std::string ask = "story", words, names, openings, opening_in = "instruction", form = "json";
  std::string request = "none", model;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  void fields(core::FieldList& f) {
    f("count", n, "how many prompts").between(0, 1e12).short_name = 'n';
    f("first", first, "number of the first: parts of one sequence can be made apart")
        .between(0, 1e12);
    f("ask", ask, "for a story, or for a list that --names or --openings reads",
      {"story", "names", "openings"});
    f("words", words, "file of lines 'noun WORD', 'verb WORD', 'adjective WORD'");
    f("names", names, "file of first names, one a line");
    f("openings", openings, "file of openings, one a line; their first 1 to 12 words are used");
    f("opening-in", opening_in,
      "where the opening stands: at the end of the instruction, or as the beginning of the answer",
      {"instruction", "answer"});
    f("form", form, "of the lines", {"json", "text"});
    f("request", request, "write the requests of a batch for a served model instead",
      {"none", "openai"});
    f("model", model, "with --request: the name of the model");
    f("temperature", temperature, "with --request: sampling temperature").between(0, 100);
    f("max-tokens", max_tokens, "with --request: most tokens of an answer").between(1, 1e9);
  }
};

/// What one line asks.
struct Question {
  std::string instruction;
  std::string begun;  // what the answer begins with, or nothing
  core::OrderedJson record;
};

void check(const Options& options) {
  if ((options.request != "none") == options.model.empty())
    core::fail(Code::usage, "--request and --model are given together");
  if (options.ask == "story") return;
  const std::pair<const char*, bool> of_stories[] = {
      {"words", !options.words.empty()},
      {"names", !options.names.empty()},
      {"openings", !options.openings.empty()},
      {"opening-in", options.opening_in != "instruction"}};
  for (const auto& [flag, given] : of_stories)
    if (given)
      core::fail(Code::usage, "--ask {}: --{} is of prompts for stories; leave it out", options.ask,
                 flag);
}

/// What a list holds, whether it is compressed or not.
std::string text_of(const std::string& path) {
  shard::UnpackedSource source(core::open_source(path));
  return core::read_utf8(source);
}

task::StoryParts parts_of(const Options& options) {
  core::input_paths({options.words, options.names, options.openings});  // stdin is one of them
  task::StoryParts parts = task::default_story_parts();
  if (!options.words.empty()) task::read_story_words(text_of(options.words), options.words, parts);
  if (!options.names.empty())
    parts.names = task::read_first_names(text_of(options.names), options.names);
  if (!options.openings.empty())
    parts.openings = task::read_openings(text_of(options.openings), options.openings);
  return parts;
}

Question ask_story(const task::StoryPrompt& prompt, const Options& options, std::int64_t number) {
  const bool answer = options.opening_in == "answer";
  Question question;
  question.instruction =
      prompt.instruction(answer ? task::OpeningIn::answer : task::OpeningIn::instruction);
  if (answer) question.begun = prompt.opening;
  auto& json = question.record;
  json["number"] = number;
  json["prompt"] = question.instruction;
  json["noun"] = prompt.noun;
  json["verb"] = prompt.verb;
  json["adjective"] = prompt.adjective;
  json["features"] = prompt.features;
  json["name"] = prompt.name;
  json["opening"] = prompt.opening;
  return question;
}

Question ask_list(const Options& options, std::int64_t number) {
  Question question;
  question.instruction = options.ask == "names"
                             ? task::names_question()
                             : task::openings_question(static_cast<std::uint64_t>(number));
  question.record["number"] = number;
  question.record["prompt"] = question.instruction;
  return question;
}

std::string line_of(const Question& question, const Options& options, std::int64_t seed,
                    std::int64_t number) {
  if (options.request != "none") {
    const auto id = fmt::format("{}-{}-{}", options.ask, seed, number);
    const task::StoryRequest request{id,
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

int generate(const Options& options, const cli::Context& context) {
  check(options);
  const auto parts = parts_of(options);
  core::Output out(context.output);
  for (std::int64_t number = options.first; number < options.first + options.n; ++number) {
    const auto question =
        options.ask == "story"
            ? ask_story(task::story_prompt(parts, static_cast<std::uint64_t>(context.seed),
                                           static_cast<std::uint64_t>(number)),
                        options, number)
            : ask_list(options, number);
    out.write(line_of(question, options, context.seed, number) + "\n");
  }
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(
      argc, argv,
      {"gen-babistories-prompts",
       "Prompts that ask a language model for short stories that differ, "
       "or for the lists they are made of.",
       "  gen-babistories-prompts -n 5 --form text\n"
       "  gen-babistories-prompts --ask names -n 2560 --request openai --model "
       "NAME -o batch.jsonl\n"
       "  gen-babistories-prompts -n 100000 --request openai --model NAME -o batch.jsonl",
       {"words", "names", "openings"}},
      options, generate);
}
