#pragma once
// Tests whether one model's perplexity on a text is lower than another's: a paired t test of the
// difference of their losses, with a standard error for dependent tokens.
// Computes Student's t distribution, for intervals and tests of means.
// Reads two models' scores of the same tokens in parallel: the work of compare-ppl.

#include "core/json.h"

namespace task {

/// A ScoreBlock holds sums over one block of consecutive tokens.
struct ScoreBlock {
  double a = 0, b = 0;  ///< nats of each model
  std::uint64_t tokens = 0;
};

/// A Comparison is the difference of the losses, b - a, in nats per token. A negative difference
/// means that b is the better model.
struct Comparison {
  double loss_a = 0, loss_b = 0;
  double difference = 0;
  /// The confidence interval of the difference, with coverage `confidence`.
  double low = 0, high = 0;
  /// The two-sided p value: the probability of such a difference by chance alone.
  double p = 1;
  double freedom = 0;  ///< degrees of freedom of Student's t
  double standard_error = 0;
};

constexpr std::uint64_t kLeastBlocks = 10;      ///< minimum number of blocks of tokens
constexpr double kLeastEffectiveDocuments = 6;  ///< minimum of effective_documents()
constexpr std::uint64_t kLeastTokens = 512;     ///< minimum length of a text that is compared by
                                                ///< blocks of tokens

/// Compares consecutive blocks of one text, all of one length except the last. The standard error
/// is estimated from the lowest frequencies: it is the mean square of the projections of the
/// differences on `freedom` cosines (Müller 2007; Lazarus, Lewis, Stock & Watson 2018, "HAR
/// inference", the EWC estimator), at most one fewer than whole blocks. With that many and no
/// shorter block, this is the t test of the blocks' means. The test is exact if dependence decays
/// within a hundredth of the text, or within a block. Throws Error{bad_data} for fewer than
/// kLeastBlocks whole blocks or kLeastTokens tokens, and for a loss that is not finite.
Comparison compare_consecutive(const std::vector<ScoreBlock>& blocks, double confidence);

/// Compares independent documents of any lengths. The variance is that of a ratio, with each
/// residual corrected for its document's fraction of the tokens (Bell & McCaffrey 2002). The
/// degrees of freedom are the geometric mean of theirs for independent tokens, and of theirs for
/// the variances of tokens and of whole documents that the residuals suggest: the first are too
/// many if documents differ as wholes, the second too few. Throws Error{bad_data} if the documents
/// count as fewer than kLeastEffectiveDocuments, and for a loss that is not finite.
Comparison compare_documents(const std::vector<ScoreBlock>& documents, double confidence);

/// Compares models of several seeds on one text: Student's t over the differences of the pairs,
/// each with the sums of all tokens. The interval holds for other seeds, and for this text. Throws
/// Error{bad_data} if all pairs differ by the same amount, and for a loss that is not finite.
Comparison compare_seeds(const std::vector<ScoreBlock>& pairs, double confidence);

/// Returns the equivalent number of documents of equal length: (sum of tokens)^2 / sum of tokens^2.
double effective_documents(const std::vector<ScoreBlock>& documents);

/// Returns the probability that |T| >= |t|, for T with `freedom` > 0 degrees of freedom, which may
/// be fractional.
double t_two_sided(double t, double freedom);

/// Returns the t with P(|T| < t) = `confidence`, where 0 < confidence < 1.
double t_quantile(double confidence, double freedom);

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
/// Error{bad_data}, naming file and line, if they score different tokens, and for a side of which
/// some files, but not all, are the same.
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
