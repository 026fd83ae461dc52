#pragma once
// Generates a set of RegBench's sequences according to options.

#include <cstdint>
#include <functional>
#include <string>

#include "core/json.h"
#include "core/options.h"
#include "shard/writer.h"
#include "task/regbench.h"

namespace task {

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

}  // namespace task
