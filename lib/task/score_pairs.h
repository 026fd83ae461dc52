#pragma once
// Reads two models' scores of the same tokens in parallel: the work of compare-ppl.

#include "core/json.h"
#include "task/comparison.h"

namespace task {

/// ScorePairs holds sums for both models over blocks of tokens and over documents, each the mean of
/// the seeds, and the sums of each seed over the text.
struct ScorePairs {
  std::vector<ScoreBlock> by_tokens, by_document, by_seed;
  std::uint64_t tokens = 0;
  std::uint64_t block = 0;  ///< tokens per block of by_tokens; the last may have fewer
};

/// A BlockChoice says what a block is: a number of tokens, or a document.
struct BlockChoice {
  bool by_document = false;  ///< always compare by documents
  /// By documents if they count as kLeastEffectiveDocuments, else by tokens according to the text's
  /// length.
  bool open = true;
  std::int64_t tokens = 0;  ///< tokens per block otherwise

  bool documents(const ScorePairs& pairs) const;
};
/// Parses "auto", "document", or a number of tokens. Throws Error{usage}.
BlockChoice block_choice_of(const std::string& text);

/// Returns the block length for a text: a 64th of it, within 8 to 512 tokens.
std::uint64_t block_for(std::uint64_t tokens);

/// Reads --per-token files of eval-ppl in parallel, one of each seed; "-" is stdin. `a` has as many
/// as `b`, or none: its sums are then 0. If the choice sets no length, the length is block_for();
/// for a text beyond 2^18 tokens it is rounded down to the resolution of the stored sums. Throws
/// Error{bad_data}, naming file and line, if they score different tokens.
ScorePairs read_score_pairs(const std::vector<std::string>& a, const std::vector<std::string>& b,
    const BlockChoice& choice);

/// Compares by documents or by blocks of tokens. The interval and p are NaN, not known, if the
/// choice is open and the text has several documents, but too few to compare by documents.
Comparison compare(const ScorePairs& pairs, const BlockChoice& choice, double confidence);

/// Returns a line for the user if blocks of tokens are compared although the text has a few
/// effective documents, which may differ from each other as wholes; else an empty text.
std::string caution(const ScorePairs& pairs, const BlockChoice& choice);

/// Returns the report of a comparison of two models: tokens, blocks, method, losses, perplexities,
/// difference, interval, p.
core::OrderedJson figures(
    const Comparison& text, const ScorePairs& pairs, const BlockChoice& choice);
/// Returns the same of several seeds, with their standard deviation, and beside it the interval and
/// p of these models over texts.
core::OrderedJson figures_over_seeds(const Comparison& seeds, const Comparison& text,
    const ScorePairs& pairs, const BlockChoice& choice);
/// Returns mean, standard deviation and interval of one model over seeds, read as `b` alone.
core::OrderedJson figures_alone(const Comparison& seeds, const ScorePairs& pairs);

}  // namespace task
