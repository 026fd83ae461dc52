#pragma once
// What gen-babistories-prompts asks: options, and a line for each prompt or list.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/options.h"
#include "task/story_prompts.h"

namespace task {

struct StoryQuestionOptions {
  std::int64_t n = 1000, first = 0;
  std::string ask = "story", words, names, openings, opening_in = "instruction", form = "json";
  std::string request = "none", model;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  void fields(core::FieldList& f);
  /// Throws Error{usage} for options that do not go together.
  void check() const;
};

/// The parts that stories are made of: the lists that the options name, else this project's own.
/// Lists may be compressed. Throws as what reads them does.
StoryParts story_parts(const StoryQuestionOptions& options);

/// Question `number` of a seed as the options have it, without a newline: JSON with its parts, the
/// text alone, or a request of a chat-completion batch.
std::string story_question(const StoryQuestionOptions& options, const StoryParts& parts,
                           std::int64_t seed, std::int64_t number);

}  // namespace task
