#pragma once
// Random automata of RegBench (Akyurek et al. 2024, "In-Context Language Learning"): the small
// regular languages that a model has to learn from one sequence.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.h"

namespace task {

/// Tokens: '.' (padding) is 0, the letters 'a' to 'r' are 1 to 18, '|' between words is 19.
inline constexpr std::uint8_t kLetters = 18, kSeparator = 19, kRegbenchTypes = 20;
inline constexpr std::string_view kRegbenchTokens = ".abcdefghijklmnopqr|";

struct Edge {
  std::uint8_t letter;  ///< 1 to 18
  std::uint8_t target;  ///< a state
  bool operator==(const Edge&) const = default;
};

/// States' edges, by letter; the start is state 0, all states accept. Every state has an edge, so
/// that words of any length begin at the start; the edges of a state are equally likely.
struct Automaton {
  std::vector<std::vector<Edge>> states;
  bool operator==(const Automaton&) const = default;
  /// Where `letter` leads from `state`, or -1.
  int next(int state, std::uint8_t letter) const;
};

/// 4 to 12 states, an alphabet of 4 to 18 letters; each state has 1 to 3 edges with different
/// letters to different states other than itself. Neither minimal nor trimmed.
Automaton random_automaton(core::Rng& rng);

/// The smallest automaton with the same words, its states in the order in which a walk by breadth
/// meets them, letter by letter: equal for equal languages.
Automaton minimal(const Automaton& automaton);

enum class RegbenchSplit { train, valid, test };
/// The streams of a seed, four a number: the automata of the splits; of the seed's complement their
/// sequences, and those of train's automata that are new (iid).
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
/// By the language alone (three quarters train, an eighth each valid and test): no language is in
/// two splits, whatever the seed and the number of automata. Of a minimal one.
RegbenchSplit split_of(const Automaton& automaton);

/// Minimal automaton `number` of a split; a seed and a number always give the same one.
Automaton regbench_automaton(std::uint64_t seed, RegbenchSplit split, std::uint64_t number);

/// [{"a":1,"c":2},...]: an object a state, letter to state.
std::string to_json(const Automaton& automaton);
/// Reads that. Throws Error{bad_data} naming `origin` for anything else.
Automaton automaton_of_json(std::string_view json, const std::string& origin);

}  // namespace task
