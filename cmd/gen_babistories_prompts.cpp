// gen-babistories-prompts: prompts that ask a language model for short stories that differ.
//
// stdout, or -o: one prompt a line: a JSON object with every part, the text alone, or a request of
// a chat-completion batch file.

#include <string>

#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/json.h"
#include "task/story_prompts.h"

namespace {

using core::Code;

struct Options {
  std::int64_t n = 1000, first = 0;
  std::string words, names, openings, form = "json";
  std::string request = "none", model;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  void fields(core::FieldList& f) {
    f("count", n, "how many prompts").between(0, 1e12).short_name = 'n';
    f("first", first, "number of the first: parts of one sequence can be made apart")
        .between(0, 1e12);
    f("words", words, "file of lines 'noun WORD', 'verb WORD', 'adjective WORD'");
    f("names", names, "file of first names, one a line");
    f("openings", openings, "file of openings, one a line; their first 1 to 12 words are used");
    f("form", form, "of the lines", {"json", "text"});
    f("request", request, "write the requests of a batch for a served model instead",
      {"none", "openai"});
    f("model", model, "with --request: the name of the model");
    f("temperature", temperature, "with --request: sampling temperature").between(0, 100);
    f("max-tokens", max_tokens, "with --request: most tokens of a story").between(1, 1e9);
  }
};

task::StoryParts parts_of(const Options& options) {
  task::StoryParts parts = task::default_story_parts();
  if (!options.words.empty())
    task::read_story_words(core::read_text(options.words), options.words, parts);
  if (!options.names.empty())
    parts.names = task::read_first_names(core::read_text(options.names), options.names);
  if (!options.openings.empty())
    parts.openings = task::read_openings(core::read_text(options.openings), options.openings);
  return parts;
}

core::OrderedJson record(const task::StoryPrompt& prompt, std::int64_t number) {
  core::OrderedJson json;
  json["number"] = number;
  json["prompt"] = prompt.instruction();
  json["noun"] = prompt.noun;
  json["verb"] = prompt.verb;
  json["adjective"] = prompt.adjective;
  json["features"] = prompt.features;
  json["name"] = prompt.name;
  json["opening"] = prompt.opening;
  return json;
}

/// One line of a chat-completion batch file: id, path, and the request's body.
core::OrderedJson request(const task::StoryPrompt& prompt, std::int64_t number,
                          const Options& options, std::int64_t seed) {
  core::OrderedJson body;
  body["model"] = options.model;
  body["messages"] = {{{"role", "user"}, {"content", prompt.instruction()}}};
  body["temperature"] = options.temperature;
  body["max_tokens"] = options.max_tokens;
  core::OrderedJson json;
  json["custom_id"] = "story-" + std::to_string(seed) + "-" + std::to_string(number);
  json["method"] = "POST";
  json["url"] = "/v1/chat/completions";
  json["body"] = body;
  return json;
}

int generate(const Options& options, const cli::Context& context) {
  if ((options.request != "none") == options.model.empty())
    core::fail(Code::usage, "--request and --model are given together");
  const auto parts = parts_of(options);
  core::Output out(context.output);
  for (std::int64_t number = options.first; number < options.first + options.n; ++number) {
    const auto prompt = task::story_prompt(parts, static_cast<std::uint64_t>(context.seed),
                                           static_cast<std::uint64_t>(number));
    if (options.request != "none")
      out.write(core::dump(request(prompt, number, options, context.seed)));
    else if (options.form == "json")
      out.write(core::dump(record(prompt, number)));
    else
      out.write(prompt.instruction());
    out.write("\n");
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
       "Prompts that ask a language model for short stories that differ.",
       "  gen-babistories-prompts -n 5 --form text\n"
       "  gen-babistories-prompts -n 100000 --request openai --model NAME -o batch.jsonl",
       {"words", "names", "openings"}},
      options, generate);
}
