// eval-ppl: the perplexity of a model, with its memories, on a text.
//
// FILE: shards of tokens or of pairs (man 5 shard), several as one; `-` or none is stdin. -m: a
// model's folder. stdout: one record of figures; with --by a table after it; with --tune alone, a
// config file; with --part a JSON line for --sum, whose FILEs are such lines.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cli/config.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/launcher.h"
#include "infer/score/evaluation.h"
#include "infer/score/part_record.h"
#include "infer/score/report.h"
#include "infer/score/score_reports.h"

namespace {

using core::Code;

struct Options {
  std::vector<std::string> files;
  infer::EvaluationOptions evaluation;
  infer::TuneOptions tune;
  infer::ReportOptions reports;
  std::string part;
  bool sum = false;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens or pairs; - or none is stdin");
    f("model", evaluation.model, "folder of the model").short_name = 'm';
    evaluation.windows.fields(f);
    evaluation.reach.fields(f);
    evaluation.memory.fields(f);
    tune.fields(f);
    reports.fields(f);
    evaluation.compute.fields(f);
    f.group("Parts");
    f("part", part,
      "I/N: score the I-th of N parts, for --sum; launcher: as srun or an array says");
    f("sum", sum, "the figures of all parts together: the FILEs are what --part wrote");
  }
  // There is nothing to score: what was chosen is the output.
  bool tunes_alone() const { return !tune.data.empty() && files.empty(); }
};

// Chooses on the validation shard, and writes what it chose to --tune-output, or to the output
// itself where there is nothing else to write there.
void tune(infer::Evaluation& evaluation, const Options& options, const cli::Context& context) {
  const shard::Dataset data = evaluation.open({options.tune.data});
  std::optional<core::Output> out;  // opened first: a place that cannot be written is said at once
  const std::string& place = options.tune.output;
  if (!place.empty() || options.tunes_alone()) out.emplace(place.empty() ? context.output : place);
  const auto tuned = [&] {
    cli::Progress progress(context, "tuning", "tokens", data.size());
    return evaluation.tune(data, options.tune,
                           [&](std::uint64_t tokens) { progress.update(tokens); });
  }();
  cli::note(context, fmt::format("tuned on {}: perplexity {:.4f}, the best of {} points ({})",
                                 data.name(), std::exp(tuned.best.loss), tuned.points.size(),
                                 evaluation.signature(data)));
  if (!out) return;
  auto chosen = evaluation.memory_options();
  out->write(cli::format_config(core::list_fields(chosen)));
  out->commit();
}

int evaluate(const infer::Evaluation& evaluation, const Options& options,
             const cli::Context& context) {
  const shard::Dataset data = evaluation.open(options.files);
  infer::Reports reports(options.reports, evaluation, data);
  core::Output out(context.output);
  if (evaluation.stores_hold(data))
    cli::note(context, "a datastore holds this very text; its entries are left out");
  const auto totals = [&] {
    cli::Progress progress(context, "scoring", "tokens", data.size());
    infer::Watch watch;
    watch.progress = [&](std::uint64_t tokens) { progress.update(tokens); };
    if (reports.any()) watch.scored = [&](const infer::Scored& scored) { reports.add(scored); };
    return evaluation.score(data, watch);
  }();
  core::OrderedJson figures = infer::figures(totals);
  figures.update(reports.figures());
  figures["signature"] = evaluation.signature(data);
  reports.commit(totals);
  out.write(cli::format_report(context, figures));
  if (options.reports.by != "none")
    out.write((context.json ? "" : "\n") + cli::format_table(context, reports.rows()));
  out.commit();
  const double most = options.reports.fail_above;
  const bool above = most > 0 && totals.perplexity() > most;
  return static_cast<int>(above ? Code::no : Code::ok);
}

// A line of what its part gives, for --sum.
int evaluate_part(const infer::Evaluation& evaluation, const Options& options,
                  const cli::Context& context) {
  const shard::Dataset data = evaluation.open(options.files);
  core::Output out(context.output);
  infer::PartRecord record;
  record.part = core::part(options.part);
  record.signature = evaluation.signature(data);
  cli::Progress progress(context, "scoring", "tokens",
                         data.size() / static_cast<std::uint64_t>(record.part.count));
  infer::Watch watch;
  watch.part = record.part;
  watch.added = [&](double nats) { record.nats.push_back(nats); };
  watch.progress = [&](std::uint64_t tokens) { progress.update(tokens); };
  const auto totals = evaluation.score(data, watch);
  record.tokens = totals.tokens;
  record.bytes = totals.bytes;
  record.words = totals.words;
  out.write(infer::to_text(record));
  out.commit();
  return 0;
}

int sum_parts(const Options& options, const cli::Context& context) {
  const auto [totals, signature] = infer::sum_parts(options.files);
  core::Output out(context.output);
  core::OrderedJson figures = infer::figures(totals);
  figures["signature"] = signature;
  out.write(cli::format_report(context, figures));
  out.commit();
  return 0;
}

// A part has figures only together with the others.
void expect_figures_alone(const Options& options, const cli::Context& context) {
  const char* const given = options.sum ? "sum" : "part";
  for (const char* flag : {"tune", "per-token", "by", "retrieval-at", "fail-above", "timings"})
    if (context.was_given(flag))
      core::fail(Code::usage, "--{}: gives the figures alone; leave --{} out", given, flag);
  if (options.sum && !options.part.empty())
    core::fail(Code::usage, "--sum: is of all parts; leave --part out");
}

int eval_ppl(const Options& options, const cli::Context& context) {
  if (options.sum || !options.part.empty()) expect_figures_alone(options, context);
  if (options.sum) return sum_parts(options, context);
  if (options.evaluation.model.empty()) core::fail(Code::usage, "--model is missing; see --help");
  options.reports.check(context.output);
  options.tune.check(options.files);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  infer::Evaluation evaluation(options.evaluation);
  if (evaluation.of_pairs()) infer::refuse_windows_of_pairs(context.given);
  if (!options.tune.data.empty()) tune(evaluation, options, context);
  if (options.tunes_alone()) return 0;
  return options.part.empty() ? evaluate(evaluation, options, context)
                              : evaluate_part(evaluation, options, context);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"eval-ppl",
                   "Scores a text with a language model and its memories: perplexity, bits per "
                   "byte, and what they depend on.",
                   "  eval-ppl -m model --tune valid.shard.zst --cache 2000 -o tuned.conf\n"
                   "  eval-ppl -m model --config tuned.conf --json test.shard.zst",
                   {"model", "datastore", "tune", "counts"}},
                  options, eval_ppl);
}
