#pragma once
// Is one model's perplexity on a text lower than another's? A paired t test of the difference of
// their losses, with a standard error for tokens that depend on each other.

#include <cstdint>
#include <vector>

namespace task {

/// Sums over one block of consecutive tokens.
struct ScoreBlock {
  double a = 0, b = 0;  ///< nats of either model
  std::uint64_t tokens = 0;
};

/// The difference of the losses, b - a, in nats a token: below 0, b is the better model.
struct Comparison {
  double loss_a = 0, loss_b = 0;
  double difference = 0;
  double low = 0, high = 0;  ///< the interval of the difference: it holds the true one with
                             ///< probability `confidence`
  double p = 1;              ///< two-sided: how often chance alone differs as much
  double freedom = 0;        ///< degrees of freedom of Student's t
};

constexpr std::uint64_t kLeastBlocks = 10;      ///< of tokens, and documents
constexpr double kLeastEffectiveDocuments = 6;  ///< see effective_documents()
constexpr std::uint64_t kLeastTokens = 512;     ///< of a text compared by blocks of tokens

/// Consecutive blocks of one text, all but the last of one length. The standard error is that of
/// the lowest frequencies: the mean square of the differences' projections on `freedom` cosines
/// (Müller 2007; Lazarus, Lewis, Stock & Watson 2018, "HAR inference", the EWC estimator). With one
/// cosine less than there are blocks this is the t test of the blocks' means. Dependence that dies
/// out within a hundredth of the text, or within a block, leaves the test exact.
/// Throws Error{bad_data} for fewer than kLeastBlocks blocks or kLeastTokens tokens, and where a
/// loss is not finite.
Comparison compare_consecutive(const std::vector<ScoreBlock>& blocks, double confidence);

/// Documents that do not depend on each other, of whatever lengths: the variance of a ratio with
/// each residual corrected for its document's share of the tokens, and the degrees of freedom that
/// the shares leave (Bell & McCaffrey 2002, for clusters of independent tokens).
/// Throws Error{bad_data} for fewer than kLeastBlocks documents, for kLeastEffectiveDocuments, and
/// where a loss is not finite.
Comparison compare_documents(const std::vector<ScoreBlock>& documents, double confidence);

/// How many documents of one length would be worth as much: (sum of tokens)^2 / sum of tokens^2.
double effective_documents(const std::vector<ScoreBlock>& documents);

}  // namespace task
