#pragma once
// What is said of a scored text beside its figures: the scores of every token, a table by parts of
// the text, how often the stores found the word.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "core/options.h"
#include "infer/score/ablation.h"
#include "infer/score/breakdown.h"
#include "infer/score/evaluation.h"
#include "infer/score/per_token.h"
#include "infer/score/retrieval.h"
#include "infer/score/scorer.h"

namespace infer {

struct ReportOptions {
  std::string per_token;    ///< a file to write; empty: none
  std::string by = "none";  ///< frequency, position or document
  std::string counts;       ///< the shard whose words `frequency` counts
  bool ablate = false;      ///< a table of what each source is worth
  std::vector<std::int64_t> retrieval_at;
  double fail_above = 0;     ///< a perplexity; 0: none is too high
  std::string timings;       ///< a file to write; empty: none
  std::string retrieve_log;  ///< the same
  void fields(core::FieldList& f);

  /// Throws Error{usage} for what contradicts itself, or where two of what it writes would go
  /// to one place; the figures go to `output` (-o; empty: stdout).
  void check(const std::string& output) const;
  bool too_high(const Totals& totals) const;
};

/// Scores and gathers what was asked for. `evaluation` and `data` must outlive it.
class Reports {
 public:
  /// Of `data` as `evaluation` scores them. Files are begun here, so that a place that cannot be
  /// written is said at once: throws Error{cannot_create}, and as Breakdown and Retrieval do.
  Reports(const ReportOptions& options, const Evaluation& evaluation, const shard::Dataset& data);

  /// All of the data; `progress` is told the tokens so far.
  Totals score(const std::function<void(std::uint64_t)>& progress);
  /// The figures of report.h, "retrieval" where it was asked for, and the signature.
  core::OrderedJson figures(const Totals& totals) const;
  /// The table; no rows where none was asked for.
  std::vector<core::OrderedJson> rows() const;
  /// The files are complete, and get their names.
  void commit(const Totals& totals);

 private:
  void add(const Scored& scored);
  void add(const Retrieved& retrieved);

  const Evaluation& evaluation_;
  const shard::Dataset& data_;
  std::optional<Breakdown> breakdown_;
  std::optional<Ablation> ablation_;
  std::optional<PerToken> per_token_;
  std::optional<Retrieval> retrieval_;
  std::optional<core::Output> timings_, retrieve_log_;
};

}  // namespace infer
