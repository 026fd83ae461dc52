#pragma once
// Reads RegBench's sequences together with their automata, for eval-regbench.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "shard/dataset.h"
#include "task/automaton.h"
#include "task/regbench.h"

namespace task {

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
std::vector<RegbenchProblem> read_regbench_problems(const shard::Dataset& data,
                                                    const std::string& automata);

/// Returns sequences and positions, then accuracy, total variation and L1, named by convention.
core::OrderedJson figures(const RegbenchScore& score);

}  // namespace task
