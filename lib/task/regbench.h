#pragma once
// RegBench's sequences and how well predictions follow the automaton behind them (Akyurek et al.
// 2024).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rng.h"
#include "task/automaton.h"

namespace task {

using Sequence = std::vector<std::uint8_t>;  ///< tokens, see kRegbenchTokens

/// Words from the automaton's start on, '|' between them. The published lengths; nothing is cut at
/// the 2,048 tokens that the paper allows, since the longest sequence has 949.
struct SequenceShape {
  std::int64_t least_words = 10, most_words = 19;
  std::int64_t longest_word = 49;
};

Sequence random_sequence(const Automaton& automaton, const SequenceShape& shape, core::Rng& rng);

/// The state before each next token, for tokens 0 to n - 2 of a sequence: after '|' it is the
/// start. Throws Error{bad_data} naming `origin` if the automaton has no such words.
std::vector<int> states_of(const Automaton& automaton, std::span<const std::uint8_t> sequence,
                           const std::string& origin);

/// p(next token | the tokens so far): n - 1 rows of kRegbenchTypes.
using Predictions = std::vector<float>;

/// Sums over predictions. A position is a prediction of the next token; the sequence's first token
/// is not predicted.
struct RegbenchSums {
  std::uint64_t positions = 0;
  double right = 0;  ///< the most likely token goes on with a word of the automaton
  double l1 = 0;     ///< |predicted - true distribution|_1, the true one uniform over the edges
  double accuracy() const { return right / static_cast<double>(positions); }
  double l1_mean() const { return l1 / static_cast<double>(positions); }
  double tvd() const { return l1_mean() / 2; }  ///< total variation distance: half of L1
};

struct RegbenchScore {
  std::uint64_t sequences = 0;
  RegbenchSums all;              ///< positions whose next token is a letter
  RegbenchSums last;             ///< each sequence's last of them
  RegbenchSums with_separators;  ///< every position; the truth has no mass on '|'
  /// Throws Error{bad_data} as states_of.
  void add(const Automaton& automaton, std::span<const std::uint8_t> sequence,
           std::span<const float> predictions, const std::string& origin);
};

/// n-grams counted in the sequence so far: the letters that followed the last `order` - 1 tokens,
/// or the longest end of them that was followed by a letter before; uniform over all letters where
/// none was. No context reaches over a '|', which itself is the context of a word's first letter.
Predictions ngram_predictions(std::span<const std::uint8_t> sequence, std::int64_t order);

}  // namespace task
