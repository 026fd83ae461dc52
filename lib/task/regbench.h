#pragma once
// Generates RegBench's sequences and measures how well predictions match the underlying automaton
// (Akyurek et al. 2024).
// Generates a set of RegBench's sequences according to options.
// Reads RegBench's sequences together with their automata, for eval-regbench.
// Generates the random automata of RegBench (Akyurek et al. 2024, "In-Context Language Learning"):
// small regular languages that a model must learn from one sequence.

#include "core/options.h"
#include "core/rng.h"
#include "shard/dataset.h"
#include "shard/writer.h"

namespace task {

/// Token ids: '.' (padding) is 0, the letters 'a' to 'r' are 1 to 18, '|' between words is 19.
inline constexpr std::uint8_t kLetters = 18, kSeparator = 19, kRegbenchTypes = 20;
inline constexpr std::string_view kRegbenchTokens = ".abcdefghijklmnopqr|";

/// An Edge is one transition of a state.
struct Edge {
  std::uint8_t letter;  ///< 1 to 18
  std::uint8_t target;  ///< a state
  bool operator==(const Edge&) const = default;
};

/// An Automaton lists each state's edges, sorted by letter. State 0 is the start and all states
/// accept. Every state has an edge, so words of any length exist; the edges of a state are equally
/// likely.
struct Automaton {
  std::vector<std::vector<Edge>> states;
  bool operator==(const Automaton&) const = default;
  /// Returns the state that `letter` leads to from `state`, or -1.
  int next(int state, std::uint8_t letter) const;
};

/// Draws an automaton with 4 to 12 states and an alphabet of 4 to 18 letters. Each state has 1 to 3
/// edges with different letters to different states other than itself. The result is neither
/// minimal nor trimmed.
Automaton random_automaton(core::Rng& rng);

/// Returns the smallest automaton with the same language. Its states are in the order of a
/// breadth-first walk in letter order, so equal languages give equal automata.
Automaton minimal(const Automaton& automaton);

enum class RegbenchSplit { train, valid, test };
/// RegbenchStream numbers the random streams of a seed, four per automaton: the automata of the
/// splits, with the seed's complement their sequences, and new sequences of train's automata (iid).
enum class RegbenchStream : std::uint64_t { train, valid, test, iid };
inline RegbenchStream stream_of(RegbenchSplit split) {
  return split == RegbenchSplit::train   ? RegbenchStream::train
         : split == RegbenchSplit::valid ? RegbenchStream::valid
                                         : RegbenchStream::test;
}
inline core::Rng automaton_rng(std::uint64_t seed, RegbenchStream stream, std::uint64_t number) {
  return core::Rng(seed, 4 * number + static_cast<std::uint64_t>(stream));
}
inline core::Rng sequence_rng(std::uint64_t seed, RegbenchStream stream, std::uint64_t number) {
  return automaton_rng(~seed, stream, number);
}
/// Returns the split of a minimal automaton (three quarters train, an eighth each valid and test).
/// It depends only on the language, so no language is in two splits, for any seed and number of
/// automata.
RegbenchSplit split_of(const Automaton& automaton);

/// Returns the minimal automaton `number` of a split, which depends only on the arguments.
Automaton regbench_automaton(std::uint64_t seed, RegbenchSplit split, std::uint64_t number);

/// Writes one object per state, which maps letters to states: [{"a":1,"c":2},...].
std::string to_json(const Automaton& automaton);
/// Parses the output of to_json(). Throws Error{bad_data}, naming `origin`, for anything else.
Automaton automaton_of_json(std::string_view json, const std::string& origin);

using Sequence = std::vector<std::uint8_t>;  ///< tokens, see kRegbenchTokens

/// A SequenceShape holds the lengths of a sequence: words of the automaton, separated by '|'. The
/// defaults are the published ones; nothing is truncated at the paper's 2,048 tokens, because the
/// longest sequence has 949.
struct SequenceShape {
  std::int64_t least_words = 10, most_words = 19;
  std::int64_t longest_word = 49;
};

Sequence random_sequence(const Automaton& automaton, const SequenceShape& shape, core::Rng& rng);

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
  /// Adds a sequence. Throws Error{bad_data}, naming `origin`, if the automaton does not accept it.
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
