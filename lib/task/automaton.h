#pragma once
// Generates the random automata of RegBench (Akyurek et al. 2024, "In-Context Language Learning"):
// small regular languages that a model must learn from one sequence.

#include "core/rng.h"

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

}  // namespace task
