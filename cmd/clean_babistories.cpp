// clean-babistories: extracts plain stories from the output of a language model.
//
// FILE, or stdin: JSON lines (strings, objects with the story in --field, or the answers to a batch
// of chat completions), or texts separated by --separator. --requests: the batch's requests;
// answers may continue them. stdout, or -o: the stories kept, one per line, as JSON strings or as
// text. stderr: counts of dropped and cut stories by reason; with --json one line.

#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/summary.h"
#include "core/io.h"
#include "core/json.h"
#include "shard/unpacked_source.h"
#include "task/story_cleaning.h"

namespace {

struct Options {
  std::vector<std::string> files;
  task::StoryFile input;
  std::string form = "json";
  cli::SummaryOptions summary;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "the model's outputs; stdin if - or not given");
    input.fields(f);
    f("output-format", form,
        "format of the output: one JSON string per line, or each text followed by the separator",
        {"json", "text"});
    f("least-words", input.least_words, "minimum words of a story; shorter stories are dropped")
        .between(0, 1e12);
    summary.fields(f);
  }
};

/// Returns the files of stories. At most one of them and --requests reads stdin.
std::vector<std::string> story_paths(const Options& options) {
  auto paths = core::input_paths(options.files);
  auto all = paths;
  all.push_back(options.input.requests);
  core::input_paths(all);
  return paths;
}

task::AnswerOpenings requested_openings(const std::string& path) {
  return path.empty() ? task::AnswerOpenings() : task::AnswerOpenings(*shard::open_unpacked(path));
}

void write(core::Output& out, const task::CleanStory& story, const Options& options) {
  if (!story.dropped.empty()) return;
  const bool json = options.form == "json";
  out.write(
      json ? core::dump(core::Json(story.text)) : story.text + "\n" + options.input.separator);
  out.write("\n");
}

int clean(const Options& options, const cli::Context& context) {
  options.input.check();
  const auto paths = story_paths(options);
  const auto openings = requested_openings(options.input.requests);
  task::StoryTally tally;
  cli::Summary summary(context, options.summary);
  core::Output out(context.output);
  for (const auto& path : paths)
    task::clean_stories(
        *shard::open_unpacked(path), options.input, openings, [&](const task::CleanStory& story) {
          tally.add(story);
          write(out, story, options);
        });
  out.commit();
  summary.commit(tally.figures(), tally.lines());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      cli::without_seed({"clean-babistories",
          "Clean stories that a language model wrote: drop bad ones, cut comments.",
          "  clean-babistories stories.jsonl -o clean.jsonl\n"
          "  clean-babistories --format openai --requests batch.jsonl answers.jsonl\n"
          "  clean-babistories --format text --output-format text TinyStories.txt | tokenize -t "
          "gpt2.json --document-separator '<|endoftext|>' -o stories.shard.zst",
          {"requests"}}),
      options, clean);
}
