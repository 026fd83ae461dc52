// eval-ppl: measures the perplexity of a model, with its memories, on a text.
//
// FILE: texts, or shards of tokens or of pairs (man 5 shard), several as one; `-` or none is stdin.
// -m: a model's folder. stdout: one record of figures, followed by a table with --by. With --tune
// alone it is a config file. With --part it is a JSON line for --sum, whose FILEs are such lines.

#include "cli/config.h"
#include "cli/progress.h"
#include "infer/score/score_reports.h"
#include "model/tokenizer_file.h"

namespace {

struct EvalPplOptions {
  std::vector<std::string> files;
  infer::EvaluationOptions evaluation;
  infer::TuneOptions tune;
  infer::ReportOptions reports;
  infer::PartOptions parts;
  ranks::RankOptions ranks;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "texts, or shards of tokens or pairs; stdin if - or not given");
    evaluation.fields(f);
    tune.fields(f);
    reports.fields(f);
    evaluation.compute.fields(f);
    evaluation.dynamic.fields(f);
    parts.fields(f);
    ranks.fields(f);
  }
};

// Tunes on the validation shard. Writes the result to --tune-output, or to the output if nothing
// else is written there.
void tune(
    infer::Evaluation& evaluation, const EvalPplOptions& options, const cli::Context& context) {
  const shard::Dataset data = evaluation.open({options.tune.data});
  std::optional<core::Output> out;  // opened first: an unwritable path fails at once
  const std::string& place = options.tune.output;
  if (!place.empty() || options.tune.alone(options.files))
    out.emplace(place.empty() ? context.output : place);
  const auto tuned = [&] {
    cli::Progress progress(context, "tuning", "tokens", data.size());
    return evaluation.tune(data, options.tune, progress.counter());
  }();
  cli::note(context, fmt::format("tuned on {}: {} ({})", data.name(), tuned.summary(),
                         evaluation.signature(data)));
  if (!out) return;
  auto chosen = evaluation.memory_options();
  out->write(cli::format_config(core::list_fields(chosen)));
  out->commit();
}

int evaluate(const infer::Evaluation& evaluation, const EvalPplOptions& options,
    const cli::Context& context) {
  const shard::Dataset data = evaluation.open(options.files);
  infer::Reports reports(options.reports, evaluation, data);
  core::Output out(context.output);
  for (const auto& line : evaluation.notes_on(data)) cli::note(context, line);
  const auto totals = [&] {
    cli::Progress progress(context, "scoring", "tokens", data.size());
    return reports.score(progress.counter());
  }();
  reports.commit(totals);
  out.write(cli::format_parts(context, reports.figures(totals), reports.rows()));
  out.commit();
  return static_cast<int>(options.reports.too_high(totals) ? core::Code::no : core::Code::ok);
}

// Writes the results of a part as a line for --sum.
int evaluate_part(const infer::Evaluation& evaluation, const EvalPplOptions& options,
    const cli::Context& context) {
  const shard::Dataset data = evaluation.open(options.files);
  core::Output out(context.output);
  const auto part = core::part(options.parts.part);
  cli::note(context, evaluation.part_note());
  cli::Progress progress(
      context, "scoring", "tokens", data.size() / static_cast<std::uint64_t>(part.count));
  out.write(infer::to_text(evaluation.score_part(data, part, progress.counter())));
  out.commit();
  return 0;
}

// Each of several processes evaluates a part; the first gets the figures of all.
int evaluate_together(const EvalPplOptions& options, cli::Context context) {
  const auto group = ranks::join_beside(options.ranks, context.output);
  nn::set_local_rank(group->local());
  context.quiet = context.quiet || !group->first();
  std::optional<core::Output> out;
  group->together([&] {
    if (group->first()) out.emplace(context.output);
  });
  cli::Progress progress(context, "scoring", "tokens");
  const auto sum = infer::score_together(
      {options.evaluation, options.files, options.parts.datastore_ranks, cli::noter(context)},
      group, progress.counter_with_total());
  if (!sum) return 0;
  out->write(cli::format_report(context, sum->figures()));
  out->commit();
  return 0;
}

// Refuses options that need the results of all parts, or that do not apply to a sum.
void check_parts(const EvalPplOptions& options) {
  const auto& parts = options.parts;
  parts.check(options.ranks.any());
  if (!parts.any() && !options.ranks.any()) return;
  const char* const mine = parts.sum ? "sum" : options.ranks.any() ? "ranks" : "part";
  core::leave_out(mine, "gives the figures alone", options.tune);
  core::leave_out(mine, "gives the figures alone", options.reports);
  if (!parts.sum) return;
  core::leave_out(mine, "of parts that are there", options.evaluation);
  core::leave_out(mine, "of parts that are there", options.evaluation.compute);
  core::leave_out(mine, "of parts that are there", options.evaluation.dynamic);
}

int eval_ppl(EvalPplOptions options, const cli::Context& context) {
  options.evaluation.memory.choose(context.flags);
  check_parts(options);
  options.evaluation.memory.in_parts = options.ranks.any() || core::is_part(options.parts.part);
  if (options.parts.sum) {
    cli::write_report(context, infer::sum_files(options.files).figures());
    return 0;
  }
  if (options.evaluation.model.empty()) core::bad_usage("--model is missing; see --help");
  options.reports.check(context.output);
  options.tune.check(options.files);
  if (options.evaluation.dynamic.on) {
    const char* const why = "weights depend on all earlier text";
    core::leave_out("dynamic-evaluation", why, options.parts);
    core::leave_out("dynamic-evaluation", why, options.ranks);
    core::leave_out("dynamic-evaluation", why, options.tune);
  }
  // These options report on every token, also on tokens that do not count.
  auto of_tokens = options.reports;
  of_tokens.counts.clear(), of_tokens.timings.clear(), of_tokens.retrieve_log.clear();
  of_tokens.fail_above = 0;
  if (options.evaluation.loss_on == "marked")
    for (const auto& name : core::changed(of_tokens))
      core::bad_usage("--{}: cannot be combined with --loss-on marked", name);
  if (options.tune.alone(options.files))
    core::leave_out("tune", "without a FILE, nothing is scored", options.reports);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  model::read_texts_for(options.evaluation.model, context.jobs, cli::noter(context));
  if (options.ranks.any()) return evaluate_together(options, context);
  infer::Evaluation evaluation(options.evaluation);
  if (!options.tune.data.empty()) tune(evaluation, options, context);
  if (options.tune.alone(options.files)) return 0;
  return core::is_part(options.parts.part) ? evaluate_part(evaluation, options, context)
                                           : evaluate(evaluation, options, context);
}

}  // namespace

int eval_ppl_main(int argc, char** argv) {
  EvalPplOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"eval-ppl",
          "Evaluate a language model and its memories on a text: perplexity, bits per byte, and the "
          "settings they depend on.",
          "  eval-ppl -m model --tune valid.shard.zst --cache 2000 -o tuned.conf\n"
          "  eval-ppl -m model --config tuned.conf --json test.shard.zst",
          {"model", "adapter", "datastore", "ngrams", "ensemble", "retrieve", "tune", "counts"},
          {"model", "window", "stride", "cache", "datastore", "k", "ngrams", "ensemble", "memory",
              "retrieve", "tune", "config", "by", "per-token", "part", "dtype", "device", "json",
              "jobs", "output"}}),
      options, eval_ppl);
}
