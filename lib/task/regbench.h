#pragma once
// Generates RegBench's sequences and measures how well predictions match the underlying automaton
// (Akyurek et al. 2024).
// Generates a set of RegBench's sequences according to options.
// Reads RegBench's sequences together with their automata, for eval-regbench.

#include "core/options.h"
#include "shard/dataset.h"
#include "shard/writer.h"
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
std::vector<int> states_of(
    const Automaton& automaton, std::span<const std::uint8_t> sequence, const std::string& origin);

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

/// A RegbenchSet says which automata are used and how many sequences are generated.
struct RegbenchSet {
  std::string split = "train";  ///< train, valid, test; iid: new sequences of train's automata
  std::int64_t count = 5000, first = 0, environments = 0;
  SequenceShape shape;
  void fields(core::FieldList& f);

  /// Throws Error{usage} for options that contradict each other.
  void check() const;
  /// Returns the options that determine the sequences, for the provenance.
  core::OrderedJson changes(std::int64_t seed) const;
};

/// Writes the sequences, one document each, and passes the JSON line of each automaton to `lines`,
/// if it is set. The result does not depend on `jobs`. `progress` receives the number of sequences
/// done.
void make_sequences(const RegbenchSet& set, std::uint64_t seed, int jobs, shard::Writer& writer,
    const std::function<void(const std::string&)>& lines,
    const std::function<void(std::uint64_t)>& progress);

/// A RegbenchProblem is a sequence with its automaton.
struct RegbenchProblem {
  std::uint64_t begin = 0;  ///< offset of the sequence's first element in the data
  Sequence sequence;
  Automaton automaton;
  std::string origin;  ///< the automaton's line, for messages
};

/// Pairs each document of `data` with its line of the file `automata`, as gen-regbench writes them.
/// Throws Error{bad_data} for other data, a different number of lines, and an automaton that does
/// not accept the words.
std::vector<RegbenchProblem> read_regbench_problems(
    const shard::Dataset& data, const std::string& automata);

/// Returns sequences and positions, then accuracy, total variation and L1, named by convention.
core::OrderedJson figures(const RegbenchScore& score);

}  // namespace task
