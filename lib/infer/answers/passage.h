#pragma once
// What is scored, as tokens, and what comes of it.

#include <cstdint>
#include <vector>

#include "core/json.h"
#include "infer/memory/cite.h"

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

/// Of each scored token, in order.
struct TokenScores {
  std::vector<double> log_prob;   ///< nats
  std::vector<bool> best;         ///< no word was more probable
  std::vector<CitedToken> cited;  ///< where asked for
  /// Passages that stood before them: {token, passages} for each search.
  core::OrderedJson retrieved = core::OrderedJson::array();

  double sum() const;
  /// Every token is the best one.
  bool greedy() const;
};

}  // namespace infer
