// score: computes the probability of texts, continuations and choices under a model and its
// memories.
//
// FILE: requests, one per line, as text or JSON; `-` or none is stdin. -m: a model's folder.
// stdout: a JSON line for each request, in order.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/io.h"
#include "core/temporary_file.h"
#include "infer/answers/answer_all.h"
#include "infer/answers/answerer.h"
#include "nn/base/runtime.h"
#include "task/score_request.h"

namespace {

struct ScoreOptions {
  std::vector<std::string> files;
  std::string report;
  infer::AnswerOptions answers;
  infer::AnswererOptions answerer;
  ScoreOptions() { answerer.memory.weights_follow = true; }
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "requests; stdin if - or not given");
    f("report", report,
        "file for the totals over all answers; without it, they are printed on stderr");
    answers.fields(f);
    answerer.fields(f);
    f("memory-weights-follow", answerer.memory.weights_follow,
        "update learned interpolation weights on the tokens of continuations too, not only on their "
        "contexts");
    answerer.compute.fields(f);
    answerer.dynamic.fields(f);
  }
};

int score(ScoreOptions options, const cli::Context& context) {
  options.answerer.memory.choose(context.flags);
  if (core::same_place(options.report, context.output.empty() ? "-" : context.output))
    core::bad_usage("--report {}: is the output of the answers; give another file", options.report);
  const auto seed = static_cast<std::uint64_t>(context.seed);
  nn::start(context.jobs, seed, cli::noter(context));
  task::ScoreRequestReader requests(core::input_paths(options.files), options.answers.format);
  infer::Answerer answerer(options.answerer);
  cli::note(context, answerer.window_note());
  core::Output out(context.output);
  std::optional<core::Output> report;
  if (!options.report.empty()) report.emplace(options.report);

  cli::Progress progress(context, "score", "requests");
  infer::AnswerCallbacks watch;
  watch.written = [&] { out.flush(); };
  watch.wrong = cli::noter(context);
  watch.progress = progress.counter();
  const auto& [totals, seconds] =
      infer::answer_all(answerer, requests, options.answers, out, watch);
  out.commit();
  cli::note(context, answerer.special_note());
  cli::note(context, answerer.cut_note());
  if (context.verbose > 0)
    cli::note(context, fmt::format("{} requests in {:.4f} s", totals.requests(), seconds));
  if (report) {
    auto figures = totals.figures();
    figures["signature"] = answerer.signature(requests.digest());
    figures["revision"] = core::build::kGit;
    report->write(cli::format_report(context, figures));
    report->commit();
  } else {
    cli::note(context, totals.summary());
  }
  if (totals.errors() > 0)
    core::bad_data("{} of {} requests failed", totals.errors(), totals.requests());
  return 0;
}

}  // namespace

int score_main(int argc, char** argv) {
  ScoreOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"score",
          "Score texts, continuations and multiple choices with a model and its memories; prints "
          "JSON lines.",
          "  score -m model texts.txt\n"
          "  score -m model --datastore store questions.jsonl --report figures.json",
          {"model", "adapter", "datastore", "ngrams", "ensemble", "retrieve", "tokenizer",
              "verbalizers"}}),
      options, score);
}
