#include "infer/score/score_reports.h"

namespace infer {

void ReportOptions::fields(core::FieldList& f) {
  const auto in_reports = f.group("Reports");
  f("per-token", per_token, "file for the score of each token");
  f("by", by, "print the loss by part of the text, in a table",
      {"none", "frequency", "position", "document"});
  f("ablate", ablate,
      "print the loss without memory, with each source alone and with all sources, with "
      "significance tests");
  f("counts", counts, "training shard that gives the frequencies for --by frequency");
  f("retrieval-at", retrieval_at,
      "for each N, such as 1,8,64,1024, print the fraction of tokens that are among the labels of "
      "the N nearest entries")
      .between(1, 65536);
  f("fail-above", fail_above, "exit with 1 if the perplexity is higher").none_or_above(0, 1e12);
  f("timings", timings, "file for the timings: seconds, tokens_per_s");
  f("retrieve-log", retrieve_log, "file for the retrieved passages of each window, as JSON lines")
      .needs("retrieve");
}

void ReportOptions::check(const std::string& output) const {
  if ((by == "frequency") != !counts.empty())
    core::bad_usage("--by frequency: requires --counts SHARD, and --counts requires it");
  if (ablate && by != "none")
    core::bad_usage("--ablate: cannot be combined with --by {}; both print a table", by);
  for (const auto& [flag, place] : {std::pair{"--per-token", per_token}, {"--timings", timings},
           {"--retrieve-log", retrieve_log}})
    if (core::same_place(place, output.empty() ? "-" : output))
      core::bad_usage(
          "{} {}: the figures go there too; give them another place with -o", flag, place);
  if (core::same_place(timings, per_token))
    core::bad_usage("--timings {}: is the file of --per-token; give another file", timings);
  for (const auto& place : {per_token, timings})
    if (core::same_place(retrieve_log, place))
      core::bad_usage(
          "--retrieve-log {}: is the file of another report; give another file", retrieve_log);
}

bool ReportOptions::too_high(const Totals& totals) const {
  return fail_above > 0 && totals.perplexity() > fail_above;
}

Reports::Reports(
    const ReportOptions& options, const Evaluation& evaluation, const shard::Dataset& data)
    : evaluation_(evaluation), data_(data) {
  if (options.by == "position") reports_.push_back(loss_by_position(data));
  if (options.by == "document") reports_.push_back(loss_by_document(data));
  if (options.by == "frequency")
    reports_.push_back(loss_by_frequency(data, evaluation.open({options.counts})));
  const MemoryPlan& memory = evaluation.memory();
  if (options.ablate) reports_.push_back(ablation(memory, data.size()));
  if (!options.retrieval_at.empty())
    reports_.push_back(retrieval_accuracy(options.retrieval_at, memory.search().k));
  if (!options.per_token.empty())
    reports_.push_back(per_token_file(options.per_token, data, memory, evaluation.signature(data)));
  if (!options.timings.empty()) timings_.emplace(options.timings);
  if (!options.retrieve_log.empty()) retrieve_log_.emplace(options.retrieve_log);
}

Totals Reports::score(const std::function<void(std::uint64_t)>& progress) {
  Callbacks watch;
  watch.progress = progress;
  if (!reports_.empty())
    watch.scored = [this](const Scored& scored) {
      for (const auto& report : reports_) report->add(scored);
    };
  if (retrieve_log_)
    watch.retrieved = [this](const Retrieved& retrieved) {
      const core::OrderedJson line = {{"token", retrieved.first}, {"tokens", retrieved.tokens},
          {"passages", evaluation_.describe(retrieved.prefixes)}};
      retrieve_log_->write(core::dump(line) + "\n");
    };
  return evaluation_.score(data_, watch);
}

core::OrderedJson Reports::figures(const Totals& totals) const {
  core::OrderedJson figures = infer::figures(totals);
  for (const auto& report : reports_) report->add_to(figures);
  figures["signature"] = evaluation_.signature(data_);
  figures["revision"] = core::build::kGit;
  return figures;
}

std::vector<core::OrderedJson> Reports::rows() const {
  for (const auto& report : reports_)
    if (auto rows = report->rows(); !rows.empty()) return rows;
  return {};
}

void Reports::commit(const Totals& totals) {
  for (const auto& report : reports_) report->commit();
  if (retrieve_log_) retrieve_log_->commit();
  if (!timings_) return;
  timings_->write(core::dump(timings(totals)) + "\n");
  timings_->commit();
}

std::optional<PartsSum> score_together(const SharedEvaluation& what,
    std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress) {
  const auto& options = what.options;
  const core::Part part{group->rank(), group->size()};
  group->together([&] { ranks::expect_files(what.files); });
  ranks::expect_agreement(
      *group, {{"datastore-ranks", what.own_stores}, {"batch-tokens", options.windows.batch_tokens},
                  {"jobs", at::get_num_threads()}});
  // Whatever a rank refuses, it refuses before another one begins to score.
  model::Loaded loaded;
  group->together([&] { loaded = options.load(); });
  OpenMemories open;
  if (what.own_stores)
    for (const auto* const kind : source_kinds()) kind->share(options.memory, loaded, group, open);
  std::optional<Evaluation> evaluation;
  std::optional<shard::Dataset> data;
  group->together([&] {
    evaluation.emplace(options, std::move(loaded), std::move(open));
    data.emplace(evaluation->open(what.files));
    evaluation->expect_part(*data, part);
  });
  if (what.say) what.say(evaluation->part_note());
  std::string own;
  const auto score = [&] {
    const std::uint64_t of = data->size() / static_cast<std::uint64_t>(part.count);
    own = to_text(evaluation->score_part(*data, part, [&](std::uint64_t done) {
      if (group->interrupted()) core::fail(core::Code::rank_lost, "another rank was lost");
      progress(done, of);
    }));
  };
  // Searches of shared stores are collective calls of their own.
  if (what.own_stores) {
    score();
  } else {
    group->together(score);
  }
  std::vector<NamedLine> lines;
  for (auto& line : group->gather(own))
    lines.push_back({fmt::format("rank {}", lines.size()), std::move(line)});
  std::optional<PartsSum> sum;
  group->together([&] {
    if (group->first()) sum = sum_parts(lines);
  });
  return sum;
}

}  // namespace infer
