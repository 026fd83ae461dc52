#pragma once
// All prompts of a reader through a generator, batch by batch, into an output: sample's work.

#include <cstdint>
#include <functional>
#include <string>

#include "core/json.h"
#include "infer/generate/generator.h"
#include "infer/generate/generator_output.h"
#include "infer/generate/generator_prompts.h"

namespace infer {

struct SampledTotals {
  std::uint64_t texts = 0, steps = 0;  ///< a step is a token of a text
  double seconds = 0;                  ///< without waiting for prompts
  SearchCounts searches = {};          ///< of stores
  std::uint64_t spans = 0, taken = 0;  ///< spans that were proposed, and tokens taken of them

  std::string summary() const;  ///< in a line
  /// {"texts", "tokens", "seconds", "tokens_per_s", "searches": {"made", "followed", "skipped"},
  /// "spans": {"proposed", "tokens", "tokens_per_span"}}.
  core::OrderedJson figures() const;
};

/// What sample_all() tells as it goes, beside what it writes.
struct SampleWatch {
  std::function<void(const Sample&)> finished = {};
  std::function<void(const std::string&)> warn = {};  ///< see GeneratorWatch; and of the window
  std::function<void(std::uint64_t steps)> progress = {};  ///< so far; may throw
  std::function<void(const std::string&)> checked = {};    ///< Generator::engine_error(), once
  /// Of a conversation: an answer begins, or is over; and whether it is to stop where it is.
  std::function<void(bool begins)> turn = {};
  std::function<bool()> stops = {};
};

/// Of sources more are read ahead than are decoded together, so that those of one length can go
/// together. Throws as PromptReader::next() and Generator::run() do.
SampledTotals sample_all(Generator& generator, PromptReader& prompts, SampleOutput& output,
                         const SampleWatch& watch);

}  // namespace infer
