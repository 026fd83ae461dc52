#pragma once
// What is scored, as tokens, and what comes of it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "infer/memory/cite.h"
#include "nn/base/torch.h"

namespace infer {

/// A context with what may follow it. A text is one too: its first token, or what stands before it,
/// with the rest.
struct Passage {
  std::vector<std::int64_t> context;                     ///< not empty
  std::vector<std::vector<std::int64_t>> continuations;  ///< none of them empty, but of a text
  /// A text: scored by windows that slide over it. Else what stands in front of the context is left
  /// out where it does not fit into the window together with the longest continuation.
  bool text = false;
};

/// What else is known of a token.
struct TokenDetails {
  std::int64_t rank = 0;                                ///< words that are more probable
  std::vector<std::pair<std::int64_t, double>> likely;  ///< the most probable words, and how much
  std::vector<double> shares;                           ///< of its probability, by source_names()
};

/// What is told beside scores.
struct TokenWants {
  const Citer* citer = nullptr;  ///< null: no citations
  bool details = false;
  std::int64_t likely = 0;       ///< words of TokenDetails
  bool hidden = false;           ///< f, and no scores
  shard::Fingerprints own = {};  ///< of the text, whose entries of stores are left out
};

/// Of each scored token, in order.
struct TokenScores {
  std::vector<double> log_prob;       ///< nats
  std::vector<bool> best;             ///< no word was more probable
  std::vector<CitedToken> cited;      ///< where asked for
  std::vector<TokenDetails> details;  ///< the same
  std::vector<torch::Tensor> hidden;  ///< of a scorer that gives f alone: (n, d), in pieces
  /// Passages that stood before them: {token, passages} for each search.
  core::OrderedJson retrieved = core::OrderedJson::array();

  double sum() const;
  /// Every token is the best one.
  bool greedy() const;
};

}  // namespace infer
