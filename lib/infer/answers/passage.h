#pragma once
// Token sequences to score, and their scores.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/json.h"
#include "infer/memory/cite.h"
#include "nn/base/torch.h"

namespace infer {

/// A context with alternative continuations. A text is represented with its first token, or the BOS
/// token, as context and the other tokens as continuation.
struct Passage {
  std::vector<std::int64_t> context;                     ///< not empty
  std::vector<std::vector<std::int64_t>> continuations;  ///< not empty, except for a text
  /// A text is scored by sliding windows. Otherwise the beginning of the context is cut if the
  /// context and the longest continuation exceed the window.
  bool text = false;
};

/// Additional information about a token.
struct TokenDetails {
  std::int64_t rank = 0;                                ///< number of more probable tokens
  std::vector<std::pair<std::int64_t, double>> likely;  ///< most probable tokens, with
                                                        ///< log-probabilities
  std::vector<double> shares;                           ///< contributions to its probability, by
                                                        ///< MemoryPlan::names()
};

/// Requested outputs beside scores.
struct TokenWants {
  const Citer* citer = nullptr;  ///< null: no citations
  bool details = false;
  std::int64_t likely = 0;       ///< number of tokens in TokenDetails
  bool hidden = false;           ///< returns f instead of scores
  shard::Fingerprints own = {};  ///< fingerprints of the text, whose datastore entries are excluded
};

/// Scores of the tokens, in order.
struct TokenScores {
  std::vector<double> log_prob;       ///< nats
  std::vector<bool> best;             ///< no token had a higher probability
  std::vector<CitedToken> cited;      ///< if requested
  std::vector<TokenDetails> details;  ///< if requested
  std::vector<torch::Tensor> hidden;  ///< f in pieces (n, d), if requested instead of scores
  /// Passages retrieved for the tokens: {token, passages} for each search.
  core::OrderedJson retrieved = core::OrderedJson::array();

  double sum() const { return std::accumulate(log_prob.begin(), log_prob.end(), 0.0); }
  /// Returns whether every token was the most probable.
  bool greedy() const { return std::find(best.begin(), best.end(), false) == best.end(); }
};

}  // namespace infer
