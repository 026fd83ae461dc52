#pragma once
// Generates RegBench's sequences and measures how well predictions match the underlying automaton
// (Akyurek et al. 2024).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rng.h"
#include "task/automaton.h"

namespace task {

using Sequence = std::vector<std::uint8_t>;  ///< tokens, see kRegbenchTokens

/// A SequenceShape holds the lengths of a sequence: words of the automaton, separated by '|'. The
/// defaults are the published ones; nothing is truncated at the paper's 2,048 tokens, because the
/// longest sequence has 949.
struct SequenceShape {
  std::int64_t least_words = 10, most_words = 19;
  std::int64_t longest_word = 49;
};

Sequence random_sequence(const Automaton& automaton, const SequenceShape& shape, core::Rng& rng);

/// Returns the automaton's state before each next token, for tokens 0 to n - 2 of a sequence; after
/// '|' it is the start. Throws Error{bad_data}, naming `origin`, if the automaton does not accept
/// the words.
std::vector<int> states_of(const Automaton& automaton, std::span<const std::uint8_t> sequence,
                           const std::string& origin);

/// Predictions are p(next token | previous tokens): n - 1 rows of kRegbenchTypes.
using Predictions = std::vector<float>;

/// RegbenchSums holds sums over predictions. A position is the prediction of a next token; the
/// first token of a sequence is not predicted.
struct RegbenchSums {
  std::uint64_t positions = 0;
  /// Number of positions whose most likely token continues a word of the automaton.
  double right = 0;
  /// Sum of |predicted - true distribution|_1, where the true one is uniform over the edges.
  double l1 = 0;
  double accuracy() const { return right / static_cast<double>(positions); }
  double l1_mean() const { return l1 / static_cast<double>(positions); }
  double tvd() const { return l1_mean() / 2; }  ///< total variation distance: half of L1
};

/// A RegbenchScore holds the sums under each convention.
struct RegbenchScore {
  std::uint64_t sequences = 0;
  RegbenchSums all;              ///< positions whose next token is a letter
  RegbenchSums last;             ///< the last such position of each sequence
  RegbenchSums with_separators;  ///< all positions; the true distribution has no mass on '|'
  /// Adds a sequence. Throws Error{bad_data} as states_of() does.
  void add(const Automaton& automaton, std::span<const std::uint8_t> sequence,
           std::span<const float> predictions, const std::string& origin);
};

/// Returns the predictions of an n-gram model that counts in the sequence so far. The context is
/// the last `order` - 1 tokens, or their longest suffix that a letter has followed before; without
/// any, the distribution is uniform over all letters. A context never crosses a '|'; the '|' itself
/// is the context of a word's first letter.
Predictions ngram_predictions(std::span<const std::uint8_t> sequence, std::int64_t order);

}  // namespace task
