#pragma once
// A set of RegBench's sequences: which automata, how many, and where the file of them lies.

#include <cstdint>
#include <functional>
#include <string>

#include "core/json.h"
#include "core/options.h"
#include "shard/writer.h"
#include "task/regbench.h"

namespace task {

struct RegbenchSet {
  std::string split = "train";  ///< train, valid, test; iid: new sequences of train's automata
  std::int64_t count = 5000, first = 0, environments = 0;
  SequenceShape shape;
  void fields(core::FieldList& f);

  /// Throws Error{usage} for what contradicts itself.
  void check() const;
  /// What the sequences depend on, for the provenance.
  core::OrderedJson changes(std::int64_t seed) const;
};

/// Writes sequence after sequence, a document each, and gives the JSON lines of their automata to
/// `lines`, if it is there. The same whatever `jobs`; `progress` is told the sequences done.
void make_sequences(const RegbenchSet& set, std::uint64_t seed, int jobs, shard::Writer& writer,
                    const std::function<void(const std::string&)>& lines,
                    const std::function<void(std::uint64_t)>& progress);

}  // namespace task
