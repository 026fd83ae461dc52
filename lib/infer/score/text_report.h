#pragma once
// Reports about the scored tokens of a text, beside its perplexity.

#include "infer/score/scorer.h"

namespace infer {

/// Collects the scores passed to add() and gives rows of a table, a figure or a file of them.
class TextReport {
 public:
  virtual ~TextReport() = default;
  virtual void add(const Scored& scored) = 0;
  virtual std::vector<core::OrderedJson> rows() const { return {}; }
  virtual void add_to(core::OrderedJson& /*figures*/) const {}
  /// Gives a file its final name.
  virtual void commit() {}
};

/// Breaks the loss down: a row {bucket, tokens, share (fraction of all tokens), loss, perplexity}
/// for each non-empty bucket, in order. By frequency: tokens with 0, 1-9, 10-99, ... occurrences in
/// `counts` (for example, the training data). By position: tokens 1, 2-3, 4-7, ... of their
/// document (from 0, the first token). Throws Error{bad_data} if the tokenizer of `counts` differs
/// from that of `data`.
std::unique_ptr<TextReport> loss_by_frequency(
    const shard::Dataset& data, const shard::Dataset& counts);
std::unique_ptr<TextReport> loss_by_position(const shard::Dataset& data);
std::unique_ptr<TextReport> loss_by_document(const shard::Dataset& data);

/// Measures the effect of each source on a text of about `tokens` tokens: no source, each source
/// alone, and all sources, in one pass of the model. Throws Error{usage} without sources, and with
/// gates, which are fitted for one mixture.
std::unique_ptr<TextReport> ablation(const MemoryPlan& memory, std::uint64_t tokens);

/// Writes a line (task/token_scores.h) for each token of each block, in the given order. The file
/// appears complete at commit() or not at all. `data` must outlive the report. The first line names
/// this build and the signature.
std::unique_ptr<TextReport> per_token_file(const std::string& path, const shard::Dataset& data,
    const MemoryPlan& memory, const std::string& signature);

/// Counts how often the next token is the label of one of the nearest datastore entries: the figure
/// "retrieval", [{"k", "share"}, ...]. `at`: numbers of neighbours, each from 1 to `k` of the
/// search (0: no search). Throws Error{usage}.
std::unique_ptr<TextReport> retrieval_accuracy(std::vector<std::int64_t> at, std::int64_t k);

}  // namespace infer
