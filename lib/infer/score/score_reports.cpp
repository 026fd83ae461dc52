#include "infer/score/score_reports.h"

#include <utility>

#include "core/destination.h"
#include "core/error.h"
#include "infer/score/report.h"

namespace infer {

void ReportOptions::fields(core::FieldList& f) {
  const auto in_reports = f.group("Reports");
  f("per-token", per_token, "file for the score of each token");
  f("by", by, "print the loss by part of the text, in a table",
    {"none", "frequency", "position", "document"});
  f("ablate", ablate,
    "print the loss without memory, with each source alone and with all sources, with "
    "significance tests");
  f("counts", counts, "training shard whose tokens --by frequency counts");
  f("retrieval-at", retrieval_at,
    "print the fraction of tokens found among the labels of the N nearest entries, such as "
    "1,8,64,1024")
      .between(1, 65536);
  f("fail-above", fail_above, "exit with 1 if the perplexity is higher")
      .above(0)
      .at_most(1e12)
      .or_none();
  f("timings", timings, "file for the timings: seconds, tokens_per_s");
  f("retrieve-log", retrieve_log, "file for the retrieved passages of each window, as JSON lines");
}

void ReportOptions::check(const std::string& output) const {
  if ((by == "frequency") != !counts.empty())
    core::fail(core::Code::usage,
               "--by frequency: requires --counts SHARD, and --counts requires it");
  if (ablate && by != "none")
    core::fail(core::Code::usage, "--ablate: cannot be combined with --by {}; both print a table",
               by);
  for (const auto& [flag, place] : {std::pair{"--per-token", per_token},
                                    {"--timings", timings},
                                    {"--retrieve-log", retrieve_log}})
    if (core::same_place(place, output.empty() ? "-" : output))
      core::fail(core::Code::usage,
                 "{} {}: the figures go there too; give them another place with -o", flag, place);
  if (core::same_place(timings, per_token))
    core::fail(core::Code::usage, "--timings {}: is the file of --per-token; give another file",
               timings);
  for (const auto& place : {per_token, timings})
    if (core::same_place(retrieve_log, place))
      core::fail(core::Code::usage,
                 "--retrieve-log {}: is the file of another report; give another file",
                 retrieve_log);
}

bool ReportOptions::too_high(const Totals& totals) const {
  return fail_above > 0 && totals.perplexity() > fail_above;
}

Reports::Reports(const ReportOptions& options, const Evaluation& evaluation,
                 const shard::Dataset& data)
    : evaluation_(evaluation), data_(data) {
  if (options.by == "position") breakdown_ = Breakdown::by_position(data);
  if (options.by == "document") breakdown_ = Breakdown::by_document(data);
  if (options.by == "frequency")
    breakdown_ = Breakdown::by_frequency(data, evaluation.open({options.counts}));
  if (options.ablate) ablation_.emplace(evaluation.memory(), data.size());
  if (!options.retrieval_at.empty())
    retrieval_.emplace(options.retrieval_at, evaluation.memory().entries());
  if (!options.per_token.empty()) per_token_.emplace(options.per_token, data, evaluation.memory());
  if (!options.timings.empty()) timings_.emplace(options.timings);
  if (options.retrieve_log.empty()) return;
  if (!evaluation.retrieves()) core::fail(core::Code::usage, "--retrieve-log: requires --retrieve");
  retrieve_log_.emplace(options.retrieve_log);
}

void Reports::add(const Scored& scored) {
  if (breakdown_) breakdown_->add(scored);
  if (ablation_) ablation_->add(scored);
  if (per_token_) per_token_->add(scored);
  if (retrieval_) retrieval_->add(scored);
}

void Reports::add(const Retrieved& retrieved) {
  const core::OrderedJson line = {{"token", retrieved.first},
                                  {"tokens", retrieved.tokens},
                                  {"passages", evaluation_.describe(retrieved.prefixes)}};
  retrieve_log_->write(core::dump(line) + "\n");
}

Totals Reports::score(const std::function<void(std::uint64_t)>& progress) {
  Callbacks watch;
  watch.progress = progress;
  if (per_token_ || breakdown_ || ablation_ || retrieval_)
    watch.scored = [this](const Scored& scored) { add(scored); };
  if (retrieve_log_) watch.retrieved = [this](const Retrieved& retrieved) { add(retrieved); };
  return evaluation_.score(data_, watch);
}

core::OrderedJson Reports::figures(const Totals& totals) const {
  core::OrderedJson figures = infer::figures(totals);
  if (retrieval_) figures["retrieval"] = retrieval_->figures();
  figures["signature"] = evaluation_.signature(data_);
  return figures;
}

std::vector<core::OrderedJson> Reports::rows() const {
  if (ablation_) return ablation_->rows();
  return breakdown_ ? breakdown_->rows() : std::vector<core::OrderedJson>{};
}

void Reports::commit(const Totals& totals) {
  if (per_token_) per_token_->commit();
  if (retrieve_log_) retrieve_log_->commit();
  if (!timings_) return;
  timings_->write(core::dump(timings(totals)) + "\n");
  timings_->commit();
}

}  // namespace infer
