#pragma once
// Is one model's perplexity on a text lower than another's? Paired bootstrap over blocks of tokens
// (Efron & Tibshirani 1993, chapters 13 and 16; for the paired form Koehn 2004).

#include <cstdint>
#include <vector>

namespace task {

/// Sums over one block of consecutive tokens. Neighbours depend on each other, so blocks are drawn,
/// not tokens.
struct ScoreBlock {
  double a = 0, b = 0;  ///< nats of either model
  std::uint64_t tokens = 0;
};

/// The difference of the losses, b - a, in nats a token: below 0, b is the better model.
struct Comparison {
  double loss_a = 0, loss_b = 0;
  double difference = 0;
  double low = 0, high = 0;  ///< the interval that holds `confidence` of the resampled differences
  double p = 1;              ///< two-sided: how often chance alone, centred on 0, differs as much
};

/// Draws as many blocks as there are, with replacement, `resamples` times. The same seed gives the
/// same figures whatever `jobs`. Throws Error{bad_data} for fewer than two blocks that hold tokens.
Comparison compare(const std::vector<ScoreBlock>& blocks, std::int64_t resamples, double confidence,
                   std::uint64_t seed, std::int64_t jobs);

}  // namespace task
