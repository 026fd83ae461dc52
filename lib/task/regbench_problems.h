#pragma once
// RegBench's sequences with the automata behind them, read side by side: what eval-regbench scores.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "shard/dataset.h"
#include "task/automaton.h"
#include "task/regbench.h"

namespace task {

struct RegbenchProblem {
  std::uint64_t begin = 0;  ///< the sequence's first element in the data
  Sequence sequence;
  Automaton automaton;
  std::string origin;  ///< the automaton's line, for messages
};

/// Each document of `data` with its line of the file `automata`, as gen-regbench wrote them. Throws
/// Error{bad_data} for data that are no RegBench's, for another number of lines and for an
/// automaton that has no such words.
std::vector<RegbenchProblem> read_regbench_problems(const shard::Dataset& data,
                                                    const std::string& automata);

/// sequences, positions, then accuracy, total variation and L1 under the names of the conventions.
core::OrderedJson figures(const RegbenchScore& score);

}  // namespace task
