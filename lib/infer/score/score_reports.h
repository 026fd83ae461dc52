#pragma once
// Reports about a scored text beside its perplexity: per-token scores, a breakdown of the loss, and
// the retrieval accuracy of datastores.
// Distributes one evaluation over several processes, each of which scores a part.

#include "infer/score/evaluation.h"
#include "infer/score/text_report.h"

namespace infer {

struct ReportOptions {
  std::string per_token;    ///< output file; empty: none
  std::string by = "none";  ///< frequency, position or document
  std::string counts;       ///< shard whose token counts `frequency` uses
  bool ablate = false;      ///< reports the effect of each source
  std::vector<std::int64_t> retrieval_at;
  double fail_above = 0;     ///< maximum perplexity; 0: none
  std::string timings;       ///< output file; empty: none
  std::string retrieve_log;  ///< output file; empty: none
  void fields(core::FieldList& f);

  /// Throws Error{usage} for contradictory options, and if two outputs have one path; the results
  /// go to `output` (-o; empty: stdout).
  void check(const std::string& output) const;
  bool too_high(const Totals& totals) const;
};

/// Scores data and collects the requested reports. `evaluation` and `data` must outlive it.
class Reports {
 public:
  /// Opens the output files, so that a path that cannot be written fails early. Throws
  /// Error{cannot_create} and the errors of text_report.h.
  Reports(const ReportOptions& options, const Evaluation& evaluation, const shard::Dataset& data);

  /// Scores all data; `progress` receives the tokens so far.
  Totals score(const std::function<void(std::uint64_t)>& progress);
  /// Returns the results of report.h, "retrieval" if requested, the signature, and the git revision
  /// of this build.
  core::OrderedJson figures(const Totals& totals) const;
  /// Returns the rows of the table; empty unless requested.
  std::vector<core::OrderedJson> rows() const;
  /// Completes the files and gives them their final names.
  void commit(const Totals& totals);

 private:
  const Evaluation& evaluation_;
  const shard::Dataset& data_;
  std::vector<std::unique_ptr<TextReport>> reports_;
  std::optional<core::Output> timings_, retrieve_log_;
};

/// Inputs of a shared evaluation.
struct SharedEvaluation {
  const EvaluationOptions& options;
  const std::vector<std::string>& files;  ///< shards, visible to all ranks
  bool own_stores = false;                ///< datastores are distributed over ranks; see
                                          ///< shared_stores.h
  std::function<void(const std::string& note)> say = {};
};

/// Scores this rank's part of the shards. The first rank sums all parts, byte-identical to one
/// process; the others return nullopt. Collective; `progress` receives the part's tokens so far and
/// their approximate total. Throws the errors of Evaluation, and Error{usage} for stdin and for
/// ranks with different evaluations, on all ranks alike. With distributed datastores, other ranks
/// get Error{rank_lost} for what fails after the first search.
std::optional<PartsSum> score_together(const SharedEvaluation& what,
    std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress);

}  // namespace infer
