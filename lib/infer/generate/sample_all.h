#pragma once
// Continues all prompts of a reader batch by batch and writes the samples (program sample).

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "infer/generate/generator.h"
#include "infer/generate/generator_output.h"
#include "infer/generate/generator_prompts.h"

namespace infer {

struct SampledTotals {
  std::uint64_t texts = 0, steps = 0;  ///< a step is one token of one text
  double seconds = 0;                  ///< excludes the time spent waiting for prompts
  SearchCounts searches = {};          ///< datastore lookups
  std::uint64_t spans = 0, taken = 0;  ///< proposed spans, and tokens copied from them
  std::vector<std::pair<std::string, double>> given = {};  ///< tokens from memories; see Sample
  std::uint64_t tokens = 0;                                ///< of texts that were not stopped
  std::uint64_t turns = 0, with_passages = 0;  ///< turns for which passages were looked for

  std::string summary() const;  ///< one line
  /// Returns one line with how much each memory gave; empty if there is none.
  std::string from_memories() const;
  /// Returns {"texts", "tokens", "seconds", "tokens_per_s", "searches": {"made", "followed",
  /// "skipped"}, "spans": {"proposed", "tokens", "tokens_per_span"}}, and "memories": {NAME: the
  /// fraction of the tokens}.
  core::OrderedJson figures() const;
};

/// Callbacks of sample_all().
struct SampleCallbacks {
  std::function<void(const Sample&)> finished = {};
  std::function<void(const std::string&)> warn =
      {};  ///< see GeneratorCallbacks; also notes about the
           ///< window
  std::function<void(std::uint64_t steps)> progress = {};  ///< total so far; may throw
  std::function<void(const std::string&)> checked = {};    ///< receives Generator::engine_error(),
                                                           ///< once
  /// Of a conversation: turn() is called when an answer begins and ends; stops() returns whether to
  /// stop the answer.
  std::function<void(bool begins)> turn = {};
  std::function<bool()> stops = {};
};

/// Continues all prompts. For translations, reads more sources than one batch, so that sources of
/// similar length are decoded together. Throws the errors of PromptReader::next() and
/// Generator::run().
SampledTotals sample_all(Generator& generator, PromptReader& prompts, SampleOutput& output,
                         const SampleCallbacks& watch);

}  // namespace infer
