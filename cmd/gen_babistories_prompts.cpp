// gen-babistories-prompts: writes prompts that ask a language model for varied short stories, or
// for lists of names and openings that vary them.
//
// stdout, or -o: one prompt per line: a JSON object with every part, the text alone, or a request
// of a chat-completion batch file.

#include "cli/run.h"
#include "task/story_prompts.h"

namespace {

int generate(const task::StoryQuestionOptions& options, const cli::Context& context) {
  options.check();
  const auto parts = task::story_parts(options);
  core::Output out(context.output);
  for (std::int64_t number = options.first; number < options.first + options.n; ++number)
    out.write(task::story_question(options, parts, context.seed, number) + "\n");
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  task::StoryQuestionOptions options;
  return cli::run(argc, argv,
      {"gen-babistories-prompts",
          "Generate prompts that ask a language model for diverse short stories, or for the lists "
          "of words they use.",
          "  gen-babistories-prompts -n 5 --output-format text\n"
          "  gen-babistories-prompts --ask names -n 2560 --request openai --model "
          "NAME -o batch.jsonl\n"
          "  gen-babistories-prompts -n 100000 --request openai --model NAME -o batch.jsonl",
          {"words", "names", "openings"}},
      options, generate);
}
