// eval-ruler: checks whether a model's answers contain what the problems of gen-ruler ask for.
//
// FILE: JSON lines of sample --json, with the ids of the problems. stdout: the percentage of
// expected answers found, over all and by task and length.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/file_text.h"
#include "core/io.h"
#include "shard/unpacked_source.h"
#include "task/ruler.h"

namespace {

struct Options {
  std::string problems;
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "answers of sample --json; stdin if - or not given");
    f("problems", problems, "file of the problems, from gen-ruler").required = true;
  }
};

int evaluate(const Options& options, const cli::Context& context) {
  core::LineReader asked(shard::open_unpacked(options.problems));
  task::RulerScore score(task::read_ruler_problems(asked));
  for (const auto& file : core::input_paths(options.files)) {
    core::LineReader answers(shard::open_unpacked(file));
    while (const auto line = answers.next())
      if (!line->empty()) score.add(*line, answers.origin());
  }
  score.check_complete(options.problems);
  cli::write_output(context, cli::format_parts(context, score.total(), score.parts()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      cli::without_seed({"eval-ruler", "Score a model's answers to the problems of gen-ruler.",
          "  eval-ruler --problems problems.jsonl answers.jsonl\n"
          "  sample -m model --temperature 0 --json problems.jsonl | eval-ruler "
          "--problems problems.jsonl",
          {"problems"}}),
      options, evaluate);
}
